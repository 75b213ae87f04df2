use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::error::{Doing, Error, Result};
use crate::ports::must_be_free;
use crate::process::{Process, command, detached, run, spawn, tail};
use crate::wait::{self, Say};

/// One PostgreSQL server: a folder with its data, log and pid file, and a port.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) folder: PathBuf,
    pub(crate) port: u16,
    /// Lines for postgresql.conf, after ours.
    pub(crate) config: String,
}

const READY_WITHIN: Duration = Duration::from_secs(60);
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

impl Server {
    pub(crate) fn process(&self) -> Option<Process> {
        Process::recorded(&self.pid_file())
    }

    /// Starts it unless it runs, and waits until it answers a query.
    pub(crate) fn start(&self, say: Say<'_>) -> Result<()> {
        if let Some(running) = self.process() {
            let ready = self.await_ready(&running, say);
            // It may be found while it dies of a kill of a moment ago.
            if ready.is_ok() || running.is_alive() {
                return ready;
            }
        }
        self.await_ready(&self.launch(say)?, say)
    }

    fn await_ready(&self, process: &Process, say: Say<'_>) -> Result<()> {
        let ready = || {
            if process.is_alive() { Ok(self.probe().is_ok()) } else { Err(Error::new("it ended")) }
        };
        wait::until(&format!("postgres on port {}", self.port), READY_WITHIN, say, ready)
            .and_then(|()| self.create_database())
            .map_err(|e| Error::new(format!("postgres did not get ready: {e}\n{}", tail(&self.log()))))
    }

    /// `INT` is PostgreSQL's fast shutdown, `QUIT` its immediate one.
    pub(crate) fn stop(&self, signal: Signal) -> Result<()> {
        if let Some(process) = self.process() {
            process.end_or_kill(signal, STOPPED_WITHIN)?;
        }
        Process::forget(&self.pid_file())
    }

    /// With all sessions: the server's own death alone leaves them until they notice.
    pub(crate) fn kill(&self) -> Result<()> {
        self.stop(Signal::KILL)?;
        end_sessions(&self.folder.join("data"), Duration::ZERO)
    }

    /// Asks the server for an answer.
    pub(crate) fn probe(&self) -> Result<()> {
        self.query("postgres", "SELECT 1").map(drop)
    }

    fn launch(&self, say: Say<'_>) -> Result<Process> {
        must_be_free(self.port, "PostgreSQL")?;
        let programs = programs()?;
        let user = server_user()?;
        self.create_folder(user.as_ref())?;
        let name = user.as_ref().map(|u| u.name);
        let data = self.folder.join("data");
        if !data.exists() {
            say("creating the data directory");
            self.initialise(&programs, &data, name)?;
        }
        end_sessions(&data, Duration::from_secs(5))?;
        remove_stale_lock(&data)?;
        let file = data.join("postgresql.conf");
        fs::write(&file, self.whole_config()).doing(|| format!("writing {}", file.display()))?;
        let mut postgres = detached(programs.join("postgres"), name);
        postgres.arg("-D").arg(&data);
        let process = spawn(postgres, &self.log())?;
        process.record(&self.pid_file())?;
        Ok(process)
    }

    fn create_folder(&self, user: Option<&User>) -> Result<()> {
        let what = || format!("preparing {}", self.folder.display());
        fs::create_dir_all(&self.folder).doing(what)?;
        let Some(user) = user else {
            return Ok(());
        };
        chown(&self.folder, Some(user.uid), Some(user.gid)).doing(what)?;
        let mut test = command("test", Some(user.name));
        test.arg("-x").arg(&self.folder);
        run(test).map(drop).map_err(|_| {
            Error::new(format!(
                "user {} cannot reach {}: set AFTERCOMMIT_SERVICES_DIR to a folder that every user may enter",
                user.name,
                self.folder.display()
            ))
        })
    }

    /// Under another name until it is complete, so that an interrupted run leaves nothing that looks like data.
    fn initialise(&self, programs: &Path, data: &Path, user: Option<&str>) -> Result<()> {
        let unfinished = self.folder.join("data.unfinished");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).doing(|| format!("removing {}", unfinished.display()))?;
        }
        let mut initdb = command(programs.join("initdb"), user);
        initdb.args([
            "--auth=trust",
            "--username=aftercommit",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        ]);
        initdb.arg("-D").arg(&unfinished);
        run(initdb)?;
        fs::rename(&unfinished, data).doing(|| format!("renaming {}", unfinished.display()))
    }

    fn create_database(&self) -> Result<()> {
        let known = self.query("postgres", "SELECT 1 FROM pg_database WHERE datname = 'aftercommit'")?;
        if known.trim().is_empty() {
            self.query("postgres", "CREATE DATABASE aftercommit")?;
        }
        Ok(())
    }

    pub(crate) fn query(&self, database: &str, sql: &str) -> Result<String> {
        let mut psql = Command::new(programs()?.join("psql"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG")) {
            psql.env_remove(name);
        }
        psql.env("PGCONNECT_TIMEOUT", "5").env("LC_ALL", "C");
        psql.args([
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "--no-password",
            "--host=127.0.0.1",
        ]);
        psql.args([&format!("--port={}", self.port), "--username=aftercommit"]);
        psql.args([&format!("--dbname={database}"), "--command", sql]);
        run(psql)
    }

    fn whole_config(&self) -> String {
        format!(
            "listen_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = ''\n\
             fsync = on\nsynchronous_commit = on\nfull_page_writes = on\n\
             timezone = 'UTC'\nlog_timezone = 'UTC'\nlc_messages = 'C'\nlog_line_prefix = '%m [%p] '\n{}\n",
            self.port, self.config
        )
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.join("postgres.pid")
    }
}

/// PostgreSQL refuses to start while sessions of a killed server are left: they get `grace` to notice its death.
fn end_sessions(data: &Path, grace: Duration) -> Result<()> {
    let data = fs::canonicalize(data).doing(|| format!("resolving {}", data.display()))?;
    let none_left = || Ok(Process::in_folder(&data).is_empty());
    if wait::until("sessions of a killed server", grace, wait::SILENT, none_left).is_ok() {
        return Ok(());
    }
    Process::in_folder(&data).iter().try_for_each(|session| session.end(Signal::KILL, STOPPED_WITHIN))
}

/// PostgreSQL also refuses to start beside a lock file whose pid is alive, even if that is another program's by now
/// (after a power cut). Once no process works in the data folder, the file is stale.
fn remove_stale_lock(data: &Path) -> Result<()> {
    Process::forget(&data.join("postmaster.pid"))
}

/// The folder of the newest installed PostgreSQL's programs (Debian keeps them out of the path).
pub(crate) fn programs() -> Result<PathBuf> {
    let version = |path: &Path| path.file_name().and_then(|n| n.to_str()).and_then(|n| n.parse::<u32>().ok());
    let debian = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()));
    let newest = debian.filter(|path| path.join("bin/postgres").exists()).max_by_key(|path| version(path));
    let on_path = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).find(|dir| dir.join("initdb").exists() && dir.join("postgres").exists())
    };
    newest
        .map(|path| path.join("bin"))
        .or_else(on_path)
        .ok_or_else(|| Error::new("PostgreSQL is not installed: run `cargo xtask setup`"))
}

struct User {
    name: &'static str,
    uid: u32,
    gid: u32,
}

/// Who the server runs as: `postgres` when we are root, which it refuses; else ourselves.
fn server_user() -> Result<Option<User>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let accounts = fs::read_to_string("/etc/passwd").doing(|| "reading /etc/passwd".to_owned())?;
    let numbers = accounts.lines().find_map(|line| {
        let mut fields = line.strip_prefix("postgres:")?.split(':').skip(1);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    });
    let (uid, gid) =
        numbers.ok_or_else(|| Error::new("there is no user postgres: run `cargo xtask setup`"))?;
    Ok(Some(User { name: "postgres", uid, gid }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_lines_come_last_and_so_win() {
        let config =
            Server { folder: PathBuf::new(), port: 1, config: "fsync = off".to_owned() }.whole_config();
        assert!(config.find("fsync = on").unwrap() < config.find("fsync = off").unwrap());
    }
}
