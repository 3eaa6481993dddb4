//! Numbers as people read them.

use std::time::Duration;

/// Bytes in the unit a person reads.
pub(crate) fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = bytes as f64 / 1024.0;
    let mut unit = UNITS[0];
    for &next in &UNITS[1..] {
        if scaled < 1000.0 {
            break;
        }
        scaled /= 1024.0;
        unit = next;
    }
    match bytes {
        0 => "0".to_owned(),
        1..1024 => format!("{bytes} B"),
        _ => format!("{scaled:.1} {unit}"),
    }
}

/// A time in the unit a person reads.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// A time of less than a minute in the unit a person reads.
pub(crate) fn short_time(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1e-3 => format!("{:.1} µs", seconds * 1e6),
        seconds if seconds < 1.0 => format!("{:.2} ms", seconds * 1e3),
        seconds => format!("{seconds:.2} s"),
    }
}

/// A share with one digit; `-` of nothing.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * part as f64 / whole as f64) }
}

/// 1234567 as 1,234,567.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut text = digits[..first].to_owned();
    for (index, chunk) in digits.as_bytes()[first..].chunks(3).enumerate() {
        if index > 0 || first > 0 {
            text.push(',');
        }
        text.extend(chunk.iter().map(|&digit| char::from(digit)));
    }
    text
}

/// 4521.4375 as 4,521.4375: at most four digits behind the point, none that is zero at the end.
pub(crate) fn decimal(number: f64) -> String {
    let text = format!("{number:.4}");
    let (whole, fraction) = text.split_once('.').expect("four digits were asked for");
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), grouped);
    match fraction.trim_end_matches('0') {
        "" => whole,
        fraction => format!("{whole}.{fraction}"),
    }
}

/// Lines of a table whose columns are as wide as their longest cell. Columns in `left` are set to the left, the others to the right.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]], left: &[usize]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let cell = |(column, text): (usize, &String)| {
        let width = widths[column];
        if left.contains(&column) { format!("{text:<width$}") } else { format!("{text:>width$}") }
    };
    let line = |row: &[String; N]| row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ");
    rows.iter().map(|row| line(row).trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_do_not_run_together() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (123456, "123,456"), (1554936601, "1,554,936,601")]
        {
            assert_eq!(grouped(number), text);
        }
        for (number, text) in [(0.0, "0"), (4380.0, "4,380"), (4521.4375, "4,521.4375"), (1000.0 / 3.0, "333.3333")] {
            assert_eq!(decimal(number), text);
        }
        for (bytes, text) in
            [(0, "0"), (700, "700 B"), (4096, "4.0 KiB"), (1 << 30, "1.0 GiB"), (487_684_597_904, "454.2 GiB")]
        {
            assert_eq!(human_bytes(bytes), text);
        }
        assert_eq!(
            (seconds(0.0421), seconds(61.25), seconds(9000.0)),
            ("42 ms".into(), "61.2 s".into(), "2.5 h".into())
        );
    }
}
