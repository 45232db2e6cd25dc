//! The kernel's figures for this process: its line `stat` of proc(5).

/// The field that proc(5) gives this number, from the fourth on.
pub fn field(number: usize) -> Option<u64> {
    let line = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name before the third field may hold anything.
    line.rsplit_once(") ")?.1.split(' ').nth(number.checked_sub(3)?)?.parse().ok()
}

/// CPU seconds that this process and those that it started and saw end have used, to a hundredth.
pub fn cpu_s() -> Option<f64> {
    let hundredths = (14..=17).map(field).sum::<Option<u64>>()?;
    Some(f64::from(u32::try_from(hundredths).ok()?) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_fourth_field_is_the_parent_and_the_second_is_no_number() {
        assert_eq!(field(4), Some(u64::from(std::os::unix::process::parent_id())));
        assert_eq!((field(2), field(1000)), (None, None));
    }

    #[test]
    fn what_was_started_has_its_cpu_time_counted() {
        let before = cpu_s().unwrap();
        let script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        assert!(Command::new("sh").args(["-c", script]).status().unwrap().success());
        assert!(cpu_s().unwrap() > before);
    }
}
