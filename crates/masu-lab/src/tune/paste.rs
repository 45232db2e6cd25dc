//! A variant as a line to paste: into a shell, into systemd's drop-in of a service, into a Dockerfile.
//!
//! Relies on [`Variant::changes`] for the variables. The hard part is that each of the three has quotes and
//! special characters of its own, and that a container has files of its own.

use serde::Serialize;

use masu_run::Variant;
use masu_run::named;
use masu_run::workload::quoted;

named! {
    /// The place where a line is pasted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum Form as "form" {
        /// Before a command in a shell.
        Environment = "env",
        /// The drop-in of a service: `systemctl edit NAME`.
        Systemd = "systemd",
        Docker = "docker",
        /// A container of a pod, in Kubernetes' YAML.
        Kubernetes = "kubernetes",
    }
}

/// The folder in a container for a library that the system did not bring.
const IN_A_CONTAINER: &str = "/usr/local/lib";

/// The variables that `variant` sets, in `form`; empty where it sets none. Values that the environment already
/// holds are not included.
pub fn paste(variant: &Variant, form: Form) -> String {
    let set: Vec<(String, String)> = variant
        .changes(|_| None)
        .into_iter()
        .map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })
        .collect();
    if set.is_empty() {
        return String::new();
    }
    match form {
        Form::Environment => {
            let words: Vec<String> =
                set.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
            words.join(" ")
        }
        Form::Systemd => {
            let mut text = "[Service]".to_owned();
            for (name, value) in &set {
                let value = escaped(value, &['\\', '"'], '\\').replace('%', "%%");
                text.push_str(&format!("\nEnvironment=\"{name}={value}\""));
            }
            text
        }
        Form::Docker | Form::Kubernetes => in_a_container(variant, set, form == Form::Docker),
    }
}

/// The lines of a Dockerfile, or those of a container's entry in a pod, whose image must have the library.
fn in_a_container(variant: &Variant, set: Vec<(String, String)>, is_docker: bool) -> String {
    let mut lines = Vec::new();
    let mut inside = None;
    if let Some(library) = &variant.library {
        let file = library.file_name().unwrap_or_default().to_string_lossy();
        let place = format!("{IN_A_CONTAINER}/{file}");
        if is_docker {
            lines.push(format!("# beside the Dockerfile: {}", library.display()));
            lines.push(format!("COPY {file} {place}"));
        } else {
            lines.push(format!("# the image needs {} as {place} (see docker)", library.display()));
        }
        inside = Some(place);
    }
    if !is_docker {
        lines.push("env:".to_owned());
    }
    for (name, value) in set {
        let value = inside.take_if(|_| name == "LD_PRELOAD").unwrap_or(value);
        if is_docker {
            lines.push(format!("ENV {name}=\"{}\"", escaped(&value, &['\\', '"', '$'], '\\')));
        } else {
            // Kubernetes expands $(NAME) in values, and takes $$ for a dollar.
            let value = escaped(&value, &['\\', '"'], '\\').replace('$', "$$");
            lines.push(format!("  - name: {name}"));
            lines.push(format!("    value: \"{value}\""));
        }
    }
    lines.join("\n")
}

fn escaped(text: &str, special: &[char], escape: char) -> String {
    let mut out = String::new();
    for character in text.chars() {
        if special.contains(&character) {
            out.push(escape);
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn variant() -> Variant {
        Variant {
            label: "jemalloc:purge_delay=0".to_owned(),
            library: Some("/usr/lib/libjemalloc.so.2".into()),
            variables: vec![(
                "MALLOC_CONF".to_owned(),
                "dirty_decay_ms:0,muzzy_decay_ms:0".to_owned(),
            )],
            ..Variant::default()
        }
    }

    #[test]
    fn a_malloc_with_settings_is_written_in_each_form() {
        assert_eq!(
            paste(&variant(), Form::Environment),
            "LD_PRELOAD=/usr/lib/libjemalloc.so.2 MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0"
        );
        assert_eq!(
            paste(&variant(), Form::Systemd),
            "[Service]\n\
             Environment=\"LD_PRELOAD=/usr/lib/libjemalloc.so.2\"\n\
             Environment=\"MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0\""
        );
        assert_eq!(
            paste(&variant(), Form::Docker),
            "# beside the Dockerfile: /usr/lib/libjemalloc.so.2\n\
             COPY libjemalloc.so.2 /usr/local/lib/libjemalloc.so.2\n\
             ENV LD_PRELOAD=\"/usr/local/lib/libjemalloc.so.2\"\n\
             ENV MALLOC_CONF=\"dirty_decay_ms:0,muzzy_decay_ms:0\""
        );
        assert_eq!(
            paste(&variant(), Form::Kubernetes),
            "# the image needs /usr/lib/libjemalloc.so.2 as /usr/local/lib/libjemalloc.so.2 (see docker)\n\
             env:\n  \
               - name: LD_PRELOAD\n    \
                 value: \"/usr/local/lib/libjemalloc.so.2\"\n  \
               - name: MALLOC_CONF\n    \
                 value: \"dirty_decay_ms:0,muzzy_decay_ms:0\""
        );
    }

    #[test]
    fn what_is_special_to_each_form_stays_what_it_is() {
        let value = "a b'c\"d$e%f\\g";
        let variables = vec![("ODD".to_owned(), value.to_owned())];
        let odd = Variant { variables, ..Variant::default() };
        let line = paste(&odd, Form::Environment);
        let _alone = masu_run::execute::alone();
        let shell = Command::new("sh").args(["-c", &format!("{line} printenv ODD")]).output();
        assert_eq!(String::from_utf8(shell.unwrap().stdout).unwrap(), format!("{value}\n"));
        let systemd = paste(&odd, Form::Systemd);
        assert_eq!(systemd, "[Service]\nEnvironment=\"ODD=a b'c\\\"d$e%%f\\\\g\"");
        assert_eq!(paste(&odd, Form::Docker), "ENV ODD=\"a b'c\\\"d\\$e%f\\\\g\"");
        let pod = "env:\n  - name: ODD\n    value: \"a b'c\\\"d$$e%f\\\\g\"";
        assert_eq!(paste(&odd, Form::Kubernetes), pod);
    }

    #[test]
    fn what_sets_nothing_is_nothing_to_paste() {
        for form in Form::ALL {
            let name = form.name();
            assert_eq!(paste(&Variant::default(), form), "");
            assert_eq!(name.parse::<Form>().unwrap(), form);
        }
        assert!("bash".parse::<Form>().unwrap_err().to_string().contains("docker, kubernetes"));
    }
}
