use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::server::Server;
use crate::error::{Doing, Error, Result};

/// Messages of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// Waiting for a consumer.
    pub ready: u64,
    /// Delivered and not settled.
    pub unsettled: u64,
}

impl Depth {
    /// All of them.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.ready + self.unsettled
    }
}

/// Tells what is in the queues of a private node right now, also after restarts of the node.
///
/// `rabbitmqctl list_queues` and the management API tell statistics, which are seconds old, and zero for a while after
/// a start; AMQP tells only what is ready. So an Erlang of our own asks the queue's process.
#[derive(Debug)]
pub struct Depths(Mutex<Pipes>);

#[derive(Debug)]
struct Pipes {
    // Ends with its input, and so with this process.
    _child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// Reads a queue's name from each line and answers with a line: ready and unsettled, or `missing`.
const PROGRAM: &str = r#"
Node = list_to_atom(os:getenv("RABBITMQ_NODENAME")),
Call = fun(M, F, A) -> rpc:call(Node, M, F, A) end,
Both = fun(State) ->
    Ready = rabbit_fifo:query_messages_ready(State),
    {Ready, rabbit_fifo:query_messages_total(State) - Ready}
end,
Ask = fun(Name) ->
    case Call(rabbit_amqqueue, lookup, [Call(rabbit_misc, r, [<<"/">>, queue, Name])]) of
        {ok, Q} ->
            case Call(amqqueue, get_type, [Q]) of
                rabbit_quorum_queue ->
                    Id = Call(amqqueue, get_pid, [Q]),
                    {ok, {_, {Ready, Out}}, _} = Call(ra, leader_query, [Id, Both]),
                    io:format("~b ~b~n", [Ready, Out]);
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

impl Depths {
    pub(crate) fn of_node(server: &Server) -> Result<Self> {
        let mut erl = Command::new("erl");
        server.environment(&mut erl);
        let mut child = erl
            .args(["-noshell", "-hidden", "-sname"])
            .arg(format!("depths-{}-{}@localhost", server.ports.amqp, std::process::id()))
            .args(["-eval", PROGRAM])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .doing(|| "starting erl".to_owned())?;
        let lacks = || Error::new("erl has no pipes");
        let input = child.stdin.take().ok_or_else(lacks)?;
        let output = BufReader::new(child.stdout.take().ok_or_else(lacks)?);
        Ok(Self(Mutex::new(Pipes { _child: child, input, output })))
    }

    /// Asks the queue. Blocking.
    ///
    /// # Errors
    ///
    /// When there is no such queue, or the node does not answer.
    pub fn of(&self, queue: &str) -> Result<Depth> {
        let what = || format!("asking for the depth of {queue}");
        let mut pipes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(pipes.input, "{queue}").doing(what)?;
        let mut line = String::new();
        pipes.output.read_line(&mut line).doing(what)?;
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        match numbers[..] {
            [ready, unsettled] => Ok(Depth { ready, unsettled }),
            _ => Err(Error::new(format!("{}: {}", what(), line.trim()))),
        }
    }
}
