use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use super::probe;
use crate::error::{Doing, Error, Result};
use crate::ports::must_be_free;
use crate::process::{Process, detached, run, spawn, tail};
use crate::wait::{self, Say};

/// Debian's wrappers in the path insist on the package's own user and folders; these scripts do not.
const SCRIPTS: &str = "/usr/lib/rabbitmq/bin";
const READY_WITHIN: Duration = Duration::from_secs(120);
const STOPPED_WITHIN: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) amqp: u16,
    pub(crate) management: u16,
    pub(crate) distribution: u16,
    pub(crate) epmd: u16,
}

/// One RabbitMQ node with an epmd of its own, so that neither joins nor outlives anything of the machine's.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) folder: PathBuf,
    pub(crate) ports: Ports,
    /// Lines for rabbitmq.conf, after ours.
    pub(crate) config: String,
}

pub(crate) fn is_installed() -> bool {
    Path::new(SCRIPTS).join("rabbitmq-server").exists()
}

impl Server {
    pub(crate) fn process(&self) -> Option<Process> {
        Process::recorded(&self.pid_file())
    }

    /// Starts it unless it runs, and waits until it answers AMQP and management requests.
    pub(crate) fn start(&self, say: Say<'_>) -> Result<()> {
        if let Some(running) = self.process() {
            self.start_epmd()?;
            let ready = self.await_ready(&running, say);
            // It may be found while it dies of a kill of a moment ago.
            if ready.is_ok() || running.is_alive() {
                return ready;
            }
        }
        self.await_ready(&self.launch()?, say)
    }

    fn await_ready(&self, process: &Process, say: Say<'_>) -> Result<()> {
        let ready = || {
            if process.is_alive() { Ok(self.probe().is_ok()) } else { Err(Error::new("it ended")) }
        };
        wait::until(&format!("rabbitmq on port {}", self.ports.amqp), READY_WITHIN, say, ready)
            .map_err(|e| Error::new(format!("rabbitmq did not get ready: {e}\n{}", tail(&self.log()))))
    }

    pub(crate) fn probe(&self) -> Result<()> {
        probe::amqp(self.ports.amqp)?;
        probe::management(self.ports.management)?;
        // Without it the node serves on, but no tool finds it.
        probe::connect(self.ports.epmd).map(drop)
    }

    /// `TERM` is RabbitMQ's graceful stop.
    pub(crate) fn stop(&self, signal: Signal) -> Result<()> {
        if let Some(process) = self.process() {
            process.end_or_kill(signal, STOPPED_WITHIN)?;
        }
        Process::forget(&self.pid_file())
    }

    pub(crate) fn stop_epmd(&self) -> Result<()> {
        if let Some(process) = Process::recorded(&self.epmd_pid_file()) {
            process.end_or_kill(Signal::TERM, Duration::from_secs(5))?;
        }
        Process::forget(&self.epmd_pid_file())
    }

    /// Runs `rabbitmqctl` against this node and returns what it printed.
    pub(crate) fn ctl(&self, args: &[&str]) -> Result<String> {
        let mut ctl = Command::new(Path::new(SCRIPTS).join("rabbitmqctl"));
        self.environment(&mut ctl);
        ctl.current_dir(&self.folder).args(args);
        run(ctl)
    }

    fn launch(&self) -> Result<Process> {
        if !is_installed() {
            return Err(Error::new("RabbitMQ is not installed: run `cargo xtask setup`"));
        }
        must_be_free(self.ports.amqp, "RabbitMQ, AMQP")?;
        must_be_free(self.ports.management, "RabbitMQ, management")?;
        must_be_free(self.ports.distribution, "RabbitMQ, Erlang distribution")?;
        self.write_files()?;
        self.start_epmd()?;
        let mut server = detached(Path::new(SCRIPTS).join("rabbitmq-server"), None);
        // Where a crash dump would land.
        server.current_dir(&self.folder);
        self.environment(&mut server);
        let process = spawn(server, &self.log())?;
        process.record(&self.pid_file())?;
        Ok(process)
    }

    /// Started here rather than by the node, which would leave it behind without telling its pid.
    fn start_epmd(&self) -> Result<()> {
        if Process::recorded(&self.epmd_pid_file()).is_some() {
            return Ok(());
        }
        must_be_free(self.ports.epmd, "RabbitMQ, epmd")?;
        let mut epmd = detached("epmd", None);
        epmd.args(["-address", "127.0.0.1", "-port", &self.ports.epmd.to_string()]);
        let process = spawn(epmd, &self.folder.join("epmd.log"))?;
        process.record(&self.epmd_pid_file())?;
        wait::until("epmd", Duration::from_secs(10), wait::SILENT, || {
            Ok(probe::connect(self.ports.epmd).is_ok())
        })
    }

    fn write_files(&self) -> Result<()> {
        let home = self.folder.join("home");
        for folder in [&self.folder, &home, &self.folder.join("conf.d")] {
            let what = || format!("creating {}", folder.display());
            DirBuilder::new().recursive(true).mode(0o755).create(folder).doing(what)?;
        }
        let write = |name: &str, text: &str| {
            let file = self.folder.join(name);
            fs::write(&file, text).doing(|| format!("writing {}", file.display()))
        };
        write("enabled_plugins", "[rabbitmq_management].\n")?;
        write("rabbitmq-env.conf", "")?;
        write("rabbitmq.conf", &self.whole_config())?;
        write_cookie(&home.join(".erlang.cookie"))
    }

    fn whole_config(&self) -> String {
        format!(
            "listeners.tcp.1 = 127.0.0.1:{}\nmanagement.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {}\n{}\n",
            self.ports.amqp, self.ports.management, self.config
        )
    }

    /// What the node and all its tools share.
    pub(crate) fn environment(&self, command: &mut Command) {
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_foreign(name.as_encoded_bytes())) {
            command.env_remove(name);
        }
        let path = |name: &str| self.folder.join(name);
        command
            .env("HOME", path("home"))
            .env("LC_ALL", "C.UTF-8")
            .env("ERL_EPMD_PORT", self.ports.epmd.to_string())
            .env("RABBITMQ_NODENAME", format!("aftercommit-{}@localhost", self.ports.amqp))
            .env("RABBITMQ_DIST_PORT", self.ports.distribution.to_string())
            .env("RABBITMQ_MNESIA_BASE", path("data"))
            .env("RABBITMQ_LOG_BASE", path("log"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", path("enabled_plugins"))
            .env("RABBITMQ_CONF_ENV_FILE", path("rabbitmq-env.conf"))
            .env("RABBITMQ_CONFIG_FILE", path("rabbitmq.conf"))
            .env("RABBITMQ_CONFIG_FILES", path("conf.d"))
            .env("RABBITMQ_ADVANCED_CONFIG_FILE", path("advanced.config"))
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}")
            // Makes the script replace itself by the Erlang machine, so that the pid we know is the broker's.
            .env("RUNNING_UNDER_SYSTEMD", "true");
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.join("rabbitmq.pid")
    }

    fn epmd_pid_file(&self) -> PathBuf {
        self.folder.join("epmd.pid")
    }
}

/// What would lead a node or its tools to something else of this machine.
fn is_foreign(name: &[u8]) -> bool {
    [&b"RABBITMQ_"[..], b"ERL_", b"NOTIFY_SOCKET"].iter().any(|prefix| name.starts_with(prefix))
}

/// Erlang makes a cookie by itself, but two tools started at once can then disagree about it.
fn write_cookie(file: &Path) -> Result<()> {
    let what = || format!("writing {}", file.display());
    match OpenOptions::new().write(true).create_new(true).mode(0o400).open(file) {
        Ok(mut cookie) => cookie.write_all(b"aftercommit-tests").doing(what),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e).doing(what),
    }
}
