mod briefing;
mod claude_code;
