//! `cargo xtask containers`: tries the instructions of docs/containers.md: the image of packaging/Containerfile built
//! and run, images of a server with masu in them, the pod for Kubernetes, and the GitHub action with its script and
//! its example.
//!
//! It relies on buildah, which needs no daemon; on `kubernetes-validate` and `check-jsonschema`, which bring Kubernetes' and
//! GitHub's schemas; and on `zizmor` and `shellcheck`, which find mistakes in actions and scripts. No registry of images is
//! asked: the images that recipes begin with are made of this machine's Debian packages, under their names.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::package::clean::{Root, is_served, talk};
use crate::{commands, files, machine, registry};

/// The checkers of pods and of GitHub's actions, by their versions, whose newest schemas are taken.
const VALIDATORS: [&str; 3] =
    ["kubernetes-validate==1.37.0", "check-jsonschema==0.39.0", "zizmor==1.32.0"];

/// The page with a workflow that uses the action.
const PAGE: &str = "docs/containers.md";

/// Builds and runs everything in a storage of its own, which is removed.
pub(crate) fn run(root: &Path) -> Result<()> {
    if !machine::is_root() {
        bail!("this chore makes root folders of files that belong to root: run it as root");
    }
    machine::provide_all(&[machine::CONTAINERS, machine::PYTHON])?;
    let folder = commands::target_folder()?.join("containers");
    files::empty_folder(&folder)?;
    let place = Place { root, folder };
    let tried = place.try_all();
    let removed = fs::remove_dir_all(&place.folder);
    tried.and(removed.with_context(|| place.folder.display().to_string()))
}

struct Place<'a> {
    root: &'a Path,
    folder: PathBuf,
}

/// A server's image with `masu` as its first program, as docs/containers.md has it.
const STARTED_BY_MASU: &str = include_str!("containers/started-by-masu.containerfile");

/// The other way to use masu in an image: the library alone.
const PRELOADED: &str = include_str!("containers/preloaded.containerfile");

/// An image on musl, where the same `masu` takes its other library.
const ON_MUSL: &str = include_str!("containers/on-musl.containerfile");

const SERVER: &str = include_str!("containers/server.c");

const AT_EXIT: &str = "--env=MASU_STATISTICS_AT_EXIT=1";

impl Place<'_> {
    fn try_all(&self) -> Result<()> {
        commands::step("images to begin with", || self.bases())?;
        commands::step("packaging/Containerfile", || self.own_image())?;
        commands::step("the pod and the action", || self.pod(&self.folder.join("volume")))?;
        commands::step("images of servers", || {
            for (name, recipe) in
                [("started", STARTED_BY_MASU), ("preloaded", PRELOADED), ("on-musl", ON_MUSL)]
            {
                let image = self.build(name, recipe)?;
                let printed = self.start(&image, &[AT_EXIT], &[])?;
                ensure!(is_served(&printed), "{name}: not served by masu:\n{printed}");
            }
            Ok(())
        })
    }

    fn buildah(&self, words: &[&str]) -> Command {
        let mut buildah = Command::new("buildah");
        buildah.env("BUILDAH_ISOLATION", "chroot").env("STORAGE_DRIVER", "vfs");
        buildah.arg("--root").arg(self.folder.join("images"));
        buildah.arg("--runroot").arg(self.folder.join("run")).args(words);
        buildah
    }

    fn image(&self, name: &str, root: &Root, settings: &[&str]) -> Result<()> {
        let container = talk(&mut self.buildah(&["from", "scratch"]), "")?;
        let container = container.trim();
        talk(self.buildah(&["copy", "--quiet", container]).arg(&root.folder).arg("/"), "")?;
        talk(&mut self.buildah(&[&["config"], settings, &[container]].concat()), "")?;
        talk(&mut self.buildah(&["commit", "--quiet", "--rm", container, name]), "")?;
        Ok(())
    }

    /// The images that recipes name, of this machine's packages.
    fn bases(&self) -> Result<()> {
        let debian = Root::of_debian("debian", &["bash", "coreutils", "dash", "libgcc-s1"])?;
        self.image("docker.io/library/debian:bookworm-slim", &debian, &["--cmd=bash"])?;
        let packages = ["binutils", "ca-certificates", "coreutils", "dash", "gcc", "libc6-dev"];
        let rust = Root::of_debian("rust", &packages)?;
        // Debian's alternatives are made when packages are set up.
        symlink("gcc", rust.folder.join("usr/bin/cc"))?;
        // The toolchain comes as a volume: see `own_image`.
        let settings = [
            "--env=PATH=/usr/local/cargo/bin:/usr/bin:/bin",
            "--env=CARGO_HOME=/usr/local/cargo",
            "--env=RUSTUP_HOME=/usr/local/rustup",
        ];
        self.image("docker.io/library/rust:1-slim-bookworm", &rust, &settings)?;
        let musl = Root::of_debian("musl", &["musl"])?;
        let source = self.folder.join("server.c");
        files::write(&source, SERVER)?;
        let mut compile = Command::new("musl-gcc");
        commands::run(compile.arg(&source).arg("-o").arg(musl.folder.join("server")))?;
        self.image("localhost/musl", &musl, &["--cmd=/server"])
    }

    fn own_image(&self) -> Result<()> {
        let volume = |from: PathBuf, to: &str| format!("--volume={}:{to}", from.display());
        let mut build =
            self.buildah(&["bud", "--quiet", "--pull-never", "--tag", "localhost/masu"]);
        build.arg(volume(registry::cargo_home()?, "/usr/local/cargo"));
        build.arg(volume(registry::home("RUSTUP_HOME", ".rustup")?, "/usr/local/rustup"));
        build.arg("--file").arg(self.root.join("packaging/Containerfile")).arg(self.root);
        commands::run(&mut build)?;
        let listed = self.start("localhost/masu", &[], &["list"])?;
        ensure!(listed.contains("masu"), "masu list: {listed}");
        let printed =
            self.start("localhost/masu", &[], &["compare", "-n", "2", "--", "ls", "/usr"])?;
        ensure!(printed.contains("glibc"), "masu compare: {printed}");
        Ok(())
    }

    fn build(&self, name: &str, recipe: &str) -> Result<String> {
        let file = self.folder.join(format!("{name}.containerfile"));
        files::write(&file, recipe)?;
        let tag = format!("localhost/{name}");
        let mut build = self.buildah(&["bud", "--quiet", "--pull-never", "--tag", &tag]);
        talk(build.arg("--file").arg(&file).arg(self.folder.join("volume")), "")?;
        Ok(tag)
    }

    /// The output of an image that is started as podman or docker would start it: its entry point with `words`, or
    /// with its own command.
    fn start(&self, image: &str, options: &[&str], words: &[&str]) -> Result<String> {
        // One word a line.
        let words_of = |what: &str| {
            let format = format!("{{{{range .OCIv1.Config.{what}}}}}{{{{println .}}}}{{{{end}}}}");
            let inspect = ["inspect", "--type", "image", "--format", &format, image];
            talk(&mut self.buildah(&inspect), "")
        };
        let (entry, own) = (words_of("Entrypoint")?, words_of("Cmd")?);
        let mut command: Vec<&str> = entry.lines().filter(|word| !word.is_empty()).collect();
        match words {
            [] => command.extend(own.lines().filter(|word| !word.is_empty())),
            words => command.extend(words),
        }
        self.start_with(image, options, &command)
    }

    /// The same with a command in place of the entry point.
    fn start_with(&self, image: &str, options: &[&str], command: &[&str]) -> Result<String> {
        let container = talk(&mut self.buildah(&["from", "--pull-never", image]), "")?;
        let container = container.trim();
        let mut run = self.buildah(&["run"]);
        let printed = talk(run.args(options).args([container, "--"]).args(command), "");
        talk(&mut self.buildah(&["rm", container]), "")?;
        printed
    }

    /// Has checkers judge the action, its script and the workflow of [`PAGE`] that uses it.
    fn action(&self, environment: &Path) -> Result<()> {
        let page = files::read(&self.root.join(PAGE))?;
        let workflow = self.folder.join("workflow.yml");
        files::write(&workflow, workflow_of(&page).context("the page has no workflow")?)?;
        let action = self.root.join("packaging/action/action.yml");
        for (schema, file) in [("actions", &action), ("workflows", &workflow)] {
            let mut lint = Command::new(environment.join("bin/check-jsonschema"));
            lint.args(["--builtin-schema", &format!("vendor.github-{schema}")]).arg(file);
            println!("{schema}: {}", talk(&mut lint, "")?.trim());
        }
        let mut audit = Command::new(environment.join("bin/zizmor"));
        println!("{}", talk(audit.args(["--offline", "--quiet"]).arg(&action), "")?.trim());
        let mut shellcheck = Command::new("shellcheck");
        // shellcheck takes a function that a trap calls for one that is never called, and reports it as information.
        shellcheck.arg("--severity=warning");
        talk(shellcheck.arg(action.with_file_name("compare-commits.sh")), "").map(drop)
    }

    /// Checks the action and the pod against schemas, then follows the steps of the pod: its init container fills the
    /// volume, and the server is preloaded from there.
    fn pod(&self, volume: &Path) -> Result<()> {
        let pod = self.root.join("packaging/kubernetes.yaml");
        let environment = self.folder.join("python");
        talk(Command::new("python3").args(["-m", "venv"]).arg(&environment), "")?;
        let mut install = Command::new(environment.join("bin/pip"));
        install.args(["install", "--quiet", "--disable-pip-version-check"]).args(VALIDATORS);
        talk(&mut install, "")?;
        self.action(&environment)?;
        let validate = |pod: &Path| {
            let mut validate = Command::new(environment.join("bin/kubernetes-validate"));
            talk(validate.arg("--strict").arg(pod), "")
        };
        println!("{}", validate(&pod)?.trim());
        let wrong = self.folder.join("wrong.yaml");
        files::write(&wrong, files::read(&pod)?.replace("mountPath:", "mountpath:"))?;
        ensure!(validate(&wrong).is_err(), "the checker finds no fault in a pod that has one");

        fs::create_dir_all(volume)?;
        let mounted = format!("--volume={}:/masu", volume.display());
        let read = |script: &str| {
            let script =
                format!("import sys, yaml\npod = yaml.safe_load(open(sys.argv[1]))\n{script}");
            let mut python = Command::new(environment.join("bin/python"));
            talk(python.args(["-c", &script]).arg(&pod), "")
        };
        let command = read("print(*pod['spec']['initContainers'][0]['command'], sep='\\n')")?;
        self.start_with("localhost/masu", &[&mounted], &command.lines().collect::<Vec<_>>())?;
        let variables = read(
            "for one in pod['spec']['containers'][0]['env']: print('--env=' + one['name'] + '=' + one['value'])",
        )?;
        let mut options: Vec<&str> = variables.lines().collect();
        options.extend([mounted.as_str(), AT_EXIT]);
        let server = "docker.io/library/debian:bookworm-slim";
        let printed = self.start_with(server, &options, &["bash", "-c", "echo"])?;
        ensure!(is_served(&printed), "the pod's server is not served by masu:\n{printed}");
        Ok(())
    }
}

fn workflow_of(page: &str) -> Option<&str> {
    let mut blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.find(|block| block.starts_with("on: pull_request"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_workflow() {
        let page = include_str!("../../docs/containers.md");
        let workflow = workflow_of(page).unwrap();
        assert!(workflow.contains("packaging/action@"), "{workflow}");
        assert!(workflow_of("```yaml\non: push\n```\n").is_none());
    }
}
