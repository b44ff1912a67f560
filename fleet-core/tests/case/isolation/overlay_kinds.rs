//! Protected paths that are no plain file or directory (01 §2.3).

use fleet_core::port::FileKind;

use super::*;

fn odd(s: &mut Scene, kind: FileKind) {
    s.tree.special("/home/u/work/.mcp.json", kind);
    s.cwd("/home/u/work");
}

#[test]
fn what_cannot_be_bound_over_is_named_or_refused() {
    for kind in [FileKind::Socket, FileKind::Fifo, FileKind::Device] {
        let policy = accepted(|s| odd(s, kind));
        let named = "`/home/u/work/.mcp.json` is neither a file nor a directory";
        assert!(policy.residual_risks.iter().any(|risk| risk.contains(named)), "{policy:#?}");
        let absent = policy.residual_risks.iter().find(|risk| risk.contains("absent in"));
        assert!(absent.is_some_and(|risk| !risk.contains(".mcp.json")), "{policy:#?}");
        // Asked for by the role it must be possible.
        refused(
            |s| {
                odd(s, kind);
                s.block.protect = Some(vec![".mcp.json".to_owned()]);
            },
            "isolation.protect[0]",
            &[named],
        );
    }
}

#[test]
fn what_is_not_there_yet_is_named_where_the_role_asks_for_it() {
    let policy = accepted(|s| {
        s.cwd("/home/u/work");
        s.block.protect = Some(vec!["Makefile".to_owned()]);
    });
    assert!(
        policy.residual_risks.iter().any(|risk| risk.contains("would obey it: Makefile, .claude"))
    );
}
