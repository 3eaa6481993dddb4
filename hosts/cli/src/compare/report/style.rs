//! The style sheet, colours of policies aside.

#[cfg(test)]
pub(super) const LIGHT_GROUND: &str = "#ffffff";
#[cfg(test)]
pub(super) const DARK_GROUND: &str = "#14171c";

/// Everything but the colours of policies.
pub(super) const STYLE: &str = "\
:root{color-scheme:light dark;--ground:#ffffff;--ink:#1b1f24;--soft:#57606a;--rule:#d5dae0;--shade:#f4f6f8;--heat:#00518f;--mark:#fff3c4}
@media (prefers-color-scheme:dark){:root{--ground:#14171c;--ink:#e6e9ed;--soft:#a2abb6;--rule:#3a424c;--shade:#1e232a;--heat:#6cc0ff;--mark:#4a3f12}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}
main{max-width:1180px;margin:0 auto;padding:24px 20px 48px}
h1,h2,h3{line-height:1.25;overflow-wrap:anywhere}
h1{font-size:1.6rem;margin:0 0 .4rem}
h2{font-size:1.3rem;margin:2.4rem 0 .4rem;padding-top:1.2rem;border-top:1px solid var(--rule)}
h3{font-size:1.05rem;margin:1.8rem 0 .5rem}
p{margin:.4rem 0 .8rem;overflow-wrap:anywhere}
.lead,.legend,.remark{color:var(--soft)}
nav{display:flex;flex-wrap:wrap;gap:.3rem 1rem;overflow-wrap:anywhere}
a{color:var(--heat)}
.advice{background:var(--shade);border-left:4px solid var(--heat);padding:.8rem 1.1rem;margin:1rem 0;border-radius:0 6px 6px 0}
.advice p{margin:.3rem 0}
.advice p:first-child{font-weight:600;font-size:1.08rem}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,420px),1fr));gap:1.2rem 1.6rem}
figure{margin:0;min-width:0}
figcaption{font-weight:600;margin-bottom:.2rem;overflow-wrap:anywhere}
figure svg{display:block;width:100%;height:auto}
svg text{font:12.5px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:var(--soft)}
.grid{stroke:var(--rule);stroke-width:1}
.line{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round}
.bound{fill:none;stroke:var(--soft);stroke-width:5;stroke-opacity:.45;stroke-linejoin:round}
.mark{fill:var(--c);stroke:var(--ground);stroke-width:1}
.front{fill:none;stroke:var(--soft);stroke-width:1.2;stroke-dasharray:3 3}
.ring{fill:none;stroke:var(--ink);stroke-width:1.4}
.heat{fill:var(--heat)}
.frame{fill:none;stroke:var(--rule);stroke-width:.6}
.box{fill:var(--c);fill-opacity:.3;stroke:var(--c)}
.whisker,.median{stroke:var(--c);stroke-width:1.6}
.median{stroke-width:3.2}
svg .name{fill:var(--ink)}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.2rem;margin:.4rem 0 .8rem;padding:0;font-size:.92rem;overflow-wrap:anywhere}
.legend li{display:flex;align-items:center;gap:.45rem;min-width:0}
.key{width:34px;height:14px;flex:none}
.swatch{width:1em;height:1em;flex:none}
details{margin:.4rem 0 .8rem}
summary{cursor:pointer;color:var(--soft);font-size:.92rem}
.scroll{overflow-x:auto;margin:.4rem 0}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);padding:.2rem 0}
th,td{padding:.22rem .6rem;border-bottom:1px solid var(--rule);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}
thead th{color:var(--soft);font-weight:600}
td.best{background:var(--mark);font-weight:700}
td.failed{color:var(--soft);font-style:italic}
.notes{display:grid;grid-template-columns:minmax(0,11rem) minmax(0,1fr);gap:.4rem 1.2rem}
.notes dt{font-weight:600}
.notes dd{margin:0}
@media (max-width:640px){svg text{font-size:14px}main{padding:16px 14px 32px}.notes{grid-template-columns:minmax(0,1fr)}.notes dd{margin-bottom:.5rem}h1{font-size:1.35rem}}
@media print{.scroll{overflow:visible}}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ground_that_colours_are_held_against_is_not_another() {
        for ground in [LIGHT_GROUND, DARK_GROUND] {
            assert!(STYLE.contains(&format!("--ground:{ground};")), "{ground}");
        }
    }
}
