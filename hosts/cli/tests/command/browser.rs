//! The report as a browser shows it.

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::shell::Shell;

/// Names under which the browser is installed.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Three policies at three budgets, on two traces.
const COMPARE: &str = "compare repo/tests/data/edges.jsonl repo/hosts/cli/sample/coding-agent-sample.jsonl --policy lru \
                       --policy two-hit+periodic:2048 --policy lru+zero --budget-gib 0.1,0.25,0.5 --quiet --out out";
const TRACES: usize = 2;
const POLICIES: usize = 3;
const BUDGETS: usize = 3;

/// Asks the page about itself. The report has no script of its own and forbids any: this goes into a copy that allows it.
const PROBE: &str = r#"
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const shown = element => element.getClientRects().length > 0;
const width = document.documentElement.clientWidth;
for (const details of all('details')) details.open = true;
const wide = all('main *').filter(element => shown(element) && !element.closest('.scroll'))
  .filter(element => element.getBoundingClientRect().right > width + 1 || element.getBoundingClientRect().left < -1);
const spilt = all('figure svg').flatMap(svg => all('text', svg).filter(text => {
  const [inner, outer] = [text.getBoundingClientRect(), svg.getBoundingClientRect()];
  return inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
}));
const crossed = all('figure svg').flatMap(svg => {
  const texts = all('text', svg).map(text => [text.textContent, text.getBoundingClientRect()]);
  return texts.flatMap(([a, ra], i) => texts.slice(i + 1).filter(([b, rb]) =>
    ra.left < rb.right - 1 && rb.left < ra.right - 1 && ra.top < rb.bottom - 1 && rb.top < ra.bottom - 1).map(([b]) => a + ' | ' + b));
});
const dark = matchMedia('(prefers-color-scheme: dark)').matches;
const answer = {
  width, dark,
  scrolls: document.documentElement.scrollWidth - width,
  wide: wide.map(element => element.outerHTML.slice(0, 80)),
  spilt: spilt.map(text => text.textContent), crossed,
  ground: getComputedStyle(document.body).backgroundColor,
  requests: performance.getEntriesByType('resource').map(entry => entry.name),
  sections: all('main > section[id]').map(section => ({
    figures: all('figure', section).length,
    untold: all('figure svg:not([aria-hidden])', section).filter(svg => !svg.querySelector('title') || !svg.querySelector('desc') || svg.getAttribute('role') !== 'img').length,
    lines: all('.line', section).filter(line => line.closest('figure')).length,
    marks: all('figure svg[aria-labelledby^=gain] .mark', section).length,
    unsized: all('.mark, .ring', section).filter(mark => shown(mark) && mark.getBoundingClientRect().width < 2).length,
    tables: all('table', section).length,
    advice: all('.advice p', section).map(p => p.textContent),
  })),
};
const out = document.createElement('pre');
out.id = 'answer';
out.textContent = JSON.stringify(answer);
top.document.body.append(out);
"#;

/// The browser, or `None` with a notice where there is none and need not be one.
fn browser() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let found =
        env::split_paths(&path).flat_map(|folder| BROWSERS.map(|name| folder.join(name))).find(|file| file.is_file());
    if found.is_none() {
        let required = env::var_os("REPRISE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
        assert!(!required, "there is none of {}: install one (apt-get install chromium)", BROWSERS.join(", "));
        let notice = format!("\n*** SKIPPED: nobody looked at the report: there is none of {}\n", BROWSERS.join(", "));
        // Past the capture of what tests print. A notice that cannot be written is no reason to fail.
        let _ = std::io::stderr().write_all(notice.as_bytes());
    }
    found
}

/// Opens a page. Returns what became of it, and all that the browser complained of.
fn open(browser: &Path, page: &Path, dark: bool) -> (String, String) {
    let profile = tempfile::tempdir().unwrap();
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr"]);
    command.args(["--hide-scrollbars", "--no-first-run", "--disable-background-networking", "--dump-dom"]);
    command.arg("--window-size=1280,900");
    command.arg(format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 }));
    command.arg(format!("--user-data-dir={}", profile.path().display()));
    let output = command.arg(format!("file://{}", page.display())).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

/// What a page answers the probe when it is as wide as asked for. Windows have a least width; a frame in one has none.
fn ask(browser: &Path, shell: &Shell, page: &str, width: u32, dark: bool) -> Value {
    let inside = page.replace('&', "&amp;").replace('"', "&quot;");
    let frame = format!(
        "<body style=\"margin:0\"><iframe style=\"border:0;width:{width}px;height:900px\" srcdoc=\"{inside}\"></iframe></body>"
    );
    shell.write("frame.html", frame);
    let (dom, complaints) = open(browser, &shell.path("frame.html"), dark);
    assert!(!complaints.contains("CONSOLE"), "{complaints}");
    let (_, answer) = dom.split_once("<pre id=\"answer\">").unwrap_or_else(|| panic!("no answer: {complaints}"));
    let (answer, _) = answer.split_once("</pre>").unwrap();
    let answer = answer.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&answer).unwrap()
}

#[test]
fn the_report_fetches_nothing_and_runs_nothing() {
    let shell = Shell::new();
    shell.run(COMPARE).exits(0);
    let report = fs::read_to_string(shell.path("out/report.html")).unwrap();
    for foreign in
        ["<script", "http:", "https:", "url(", "@import", "<img", "<iframe", "javascript:", "<link rel=\"style"]
    {
        assert!(!report.contains(foreign), "{foreign}");
    }
    assert!(report.contains("default-src 'none'"), "a browser is told so as well");
}

#[test]
fn nothing_in_the_report_is_cut_off_hidden_or_missing() {
    let Some(browser) = browser() else { return };
    let shell = Shell::new();
    let names = shell.run(COMPARE).exits(0);
    assert!(names.out.contains("lru+events"));
    let report = fs::read_to_string(shell.path("out/report.html")).unwrap();
    let (_, complaints) = open(&browser, &shell.path("out/report.html"), false);
    assert!(!complaints.contains("CONSOLE"), "{complaints}");
    // The probe has to run: its copy of the report does not forbid scripts.
    let probed = report.replace("default-src 'none'", "default-src 'none'; script-src 'unsafe-inline'");
    let probed = probed.replace("</body>", &format!("<script>{PROBE}</script></body>"));
    let mut grounds = Vec::new();
    for (width, dark) in [(1280, false), (1280, true), (400, false), (400, true)] {
        let answer = ask(&browser, &shell, &probed, width, dark);
        let at = format!("{width} wide: {answer:#}");
        assert_eq!((answer["width"].as_u64(), answer["dark"].as_bool()), (Some(width.into()), Some(dark)), "{at}");
        assert_eq!(answer["requests"].as_array().map(Vec::len), Some(0), "{at}");
        assert!(answer["scrolls"].as_i64() <= Some(0), "the page is wider than the window: {at}");
        for what in ["wide", "spilt", "crossed"] {
            assert_eq!(answer[what].as_array().map(Vec::len), Some(0), "{what}, {at}");
        }
        let sections = answer["sections"].as_array().unwrap();
        assert_eq!(sections.len(), TRACES, "{at}");
        for section in sections {
            let count = |name: &str| section[name].as_u64().unwrap() as usize;
            // Saved, written, a frontier for each budget, the largest sessions, all sessions.
            assert_eq!(count("figures"), 2 + BUDGETS + 2, "{at}");
            assert_eq!((count("untold"), count("unsized")), (0, 0), "{at}");
            assert_eq!((count("lines"), count("marks")), (2 * POLICIES, POLICIES * BUDGETS), "{at}");
            // Saved; written, prefill, shares; frontiers; two of sessions; all figures by budget.
            assert_eq!(count("tables"), 1 + 3 + 1 + 2 + BUDGETS, "{at}");
            assert!(section["advice"][0].as_str().is_some_and(|advice| advice.starts_with("Take ")), "{at}");
        }
        grounds.push(answer["ground"].clone());
    }
    assert!(grounds[0] != grounds[1] && grounds[0] == grounds[2], "{grounds:?}");
}

/// Names of traces and policies are the user's, or somebody else's.
#[test]
fn a_name_does_not_become_part_of_the_page() {
    let shell = Shell::new();
    let line = "{\"timestamp\": 0, \"input_length\": 900, \"hash_ids\": [1, 2]}\n";
    shell.write("<script>t.jsonl", line);
    shell.run("compare <script>t.jsonl --policy lru --budget-gib 1 --quiet --out out").exits(0);
    let report = fs::read_to_string(shell.path("out/report.html")).unwrap();
    assert!(!report.contains("<script") && report.contains("&lt;script&gt;t.jsonl"), "{report}");
}
