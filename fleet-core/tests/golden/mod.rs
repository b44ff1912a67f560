mod briefing;
mod claude_code;
mod forbidden;
mod units;
