//! What is in a queue right now. The management API tells it some seconds late, AMQP tells half of
//! it and `rabbitmqctl` takes seconds, so an Erlang of our own asks the queue's process.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

use aftercommit_conformance::broker::Depth;
use aftercommit_core::BoxError;

/// Reads a queue's name from each line and answers with a line: ready and unsettled, or `missing`.
const PROGRAM: &str = r#"
Node = list_to_atom(os:getenv("PROBED")),
pong = net_adm:ping(Node),
Call = fun(M, F, A) -> rpc:call(Node, M, F, A) end,
Count = fun(Id, Query) -> {ok, {_, N}, _} = Call(ra, leader_query, [Id, Query]), N end,
Ask = fun(Name) ->
    case Call(rabbit_amqqueue, lookup, [Call(rabbit_misc, r, [<<"/">>, queue, Name])]) of
        {ok, Q} ->
            case Call(amqqueue, get_type, [Q]) of
                rabbit_quorum_queue ->
                    Id = Call(amqqueue, get_pid, [Q]),
                    Ready = Count(Id, fun rabbit_fifo:query_messages_ready/1),
                    Total = Count(Id, fun rabbit_fifo:query_messages_total/1),
                    io:format("~b ~b~n", [Ready, Total - Ready]);
                rabbit_classic_queue ->
                    Keys = [messages_ready, messages_unacknowledged],
                    [{_, Ready}, {_, Out}] = Call(rabbit_amqqueue, info, [Q, Keys]),
                    io:format("~b ~b~n", [Ready, Out])
            end;
        {error, not_found} -> io:format("missing~n")
    end
end,
Loop = fun Loop() ->
    case io:get_line("") of
        eof -> halt();
        Line ->
            try Ask(list_to_binary(string:trim(Line))) catch C:E -> io:format("error ~0p~n", [{C, E}]) end,
            Loop()
    end
end,
Loop().
"#;

pub(crate) struct Probe(Mutex<Pipes>);

struct Pipes {
    // Ends with its input, and so with this process.
    _child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Probe {
    /// Joins the node that runs as this process.
    pub(crate) fn start(pid: i32) -> Result<Self, BoxError> {
        let node = environment(pid)?;
        let of = |name: &str| node.get(name).cloned().ok_or_else(|| format!("the node has no {name}"));
        let mut child = Command::new("erl")
            .args(["-noshell", "-hidden", "-sname"])
            .arg(format!("probe-{}@localhost", std::process::id()))
            .args(["-eval", PROGRAM])
            .env("PROBED", of("RABBITMQ_NODENAME")?)
            .env("ERL_EPMD_PORT", of("ERL_EPMD_PORT")?)
            .env("HOME", of("HOME")?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Self(Mutex::new(Pipes { _child: child, input, output })))
    }

    /// Blocking.
    pub(crate) fn depth(&self, queue: &str) -> Result<Depth, BoxError> {
        let mut pipes = self.0.lock().unwrap();
        writeln!(pipes.input, "{queue}")?;
        let mut line = String::new();
        pipes.output.read_line(&mut line)?;
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        match numbers[..] {
            [ready, unsettled] => Ok(Depth { ready, unsettled }),
            _ => Err(format!("the depth of {queue}: {line}").into()),
        }
    }
}

fn environment(pid: i32) -> Result<HashMap<String, String>, BoxError> {
    let all = String::from_utf8(std::fs::read(format!("/proc/{pid}/environ"))?)?;
    Ok(all.split('\0').filter_map(|pair| pair.split_once('=')).map(|(n, v)| (n.into(), v.into())).collect())
}
