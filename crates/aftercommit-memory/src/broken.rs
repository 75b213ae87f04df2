//! One switch for each promise of the contracts that a product could break.

/// Writes the enum and the list of all its variants from one text, so that none is forgotten.
macro_rules! switches {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A promise to break. Each names the fault, not the promise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Broken {
            $($(#[$doc])* $name,)*
        }

        impl Broken {
            /// Every switch.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

switches! {
    // Acker
    /// `ack` answers `Confirmed` and tells nobody.
    AckForgets,
    /// `ack` settles everything up to its tag.
    AckTakesAllBefore,
    /// `ack` answers `Confirmed` and only remembers it until the source is closed.
    AckOnlyStaged,
    /// The capabilities say less than `ack` claims.
    AckClaimsMore,
    /// `give_back` gives back everything up to its tag.
    GiveBackTakesAllBefore,
    /// `give_back` removes the message.
    GiveBackLoses,
    /// `give_back` leaves the message out and a copy in the queue.
    GiveBackForgets,
    /// `give_back(After(d))` comes at once.
    AfterComesAtOnce,
    /// `give_back(After(d))` never comes.
    AfterNeverComes,
    /// A delay that is too long is shortened instead of refused.
    LongDelayShortened,
    /// A dropped acker settles.
    DropSettles,
    /// `give_back` spends a limit: after twenty the broker drops the message.
    GiveBackSpendsLimit,
    /// After the connection ended, the acker settles whatever has its tag now.
    StaleAckSettles,
    /// After the connection ended, `give_back` gives back whatever has its tag now.
    StaleGiveBackActs,
    /// After the connection ended, the acker answers `Confirmed`.
    StaleSaysConfirmed,
    /// After its source was closed, the acker answers `Confirmed`.
    ClosedSaysConfirmed,
    /// `is_lost` is true although the delivery is ours.
    IsLostLies,

    // Source
    /// What was unsettled when the connection was cut is gone.
    CutLosesUnsettled,
    /// What was unsettled when the source was dropped or closed is gone.
    CloseLosesUnsettled,
    /// What was held back for later when the source was closed is gone.
    CloseLosesHeld,
    /// Acks are staged, and `close` does not flush them.
    CloseForgetsStaged,
    /// `close` waits until every acker is used.
    CloseWaitsForAckers,
    /// There is no bound on what is out.
    PrefetchUnbounded,
    /// The client pulls in the whole queue, though it hands out no more than the bound.
    ClientBuffersAll,
    /// What is held back for later does not count for the bound.
    HeldNotCounted,
    /// The capabilities name another bound.
    PrefetchFigureWrong,
    /// A dropped `recv` has taken a delivery.
    RecvNotCancelSafe,
    /// `recv` hands out more than was asked for.
    RecvIgnoresMax,
    /// `recv` waits until it has as many as were asked for.
    RecvWaitsToFill,
    /// `recv(0)` waits for ever.
    RecvZeroHangs,
    /// The newest comes first.
    OrderReversed,
    /// A message that comes again says that it was never handed out.
    AgainSaysFirst,
    /// A message that comes first says that it was handed out before.
    FirstSaysAgain,
    /// A cut connection ends the source.
    CutEndsSource,
    /// A cut connection is never made again.
    NoReconnect,
    /// Health stays up while the broker is away.
    HealthUpWhileDown,
    /// Health stays down although the source is subscribed again.
    HealthStaysDown,
    /// A queue that is deleted and made again is not read again.
    RecreatedNotRead,
    /// Every process of a consumer gets every message.
    EveryProcessGetsAll,
    /// A message that two subscriptions want goes to one of them.
    OneCopyForAll,

    // Message
    /// An empty body comes out absent.
    EmptyBecomesAbsent,
    /// An absent body comes out empty.
    AbsentBecomesEmpty,
    /// A body is treated as UTF-8 text.
    BodyIsText,
    /// A body is cut after 64 KiB.
    BodyIsCut,
    /// All whole numbers in headers become 64 bits wide.
    HeaderWidthLost,
    /// A header that is not a plain value is dropped.
    NestedHeaderDropped,
    /// Of several headers of one name the last one is kept.
    RepeatedHeaderLost,
    /// The key is treated as UTF-8 text.
    KeyIsText,
    /// The time of the event is dropped.
    OccurredAtLost,
    /// The native id is trimmed.
    IdTrimmed,
    /// A message without an id gets one.
    IdInvented,
    /// Native properties are dropped.
    NativeLost,
    /// Fields that command a broker are sent.
    CommandsSent,
    /// The origin names the queue instead of what was published to.
    OriginIsQueue,

    // Publisher
    /// A message without a route is confirmed.
    UnroutableSaysOk,
    /// A message that was refused is confirmed.
    RefusedSaysOk,
    /// A refusal that may pass is called final.
    RefusedForGood,
    /// A message that is too large is confirmed.
    TooLargeSaysOk,
    /// A message that is too large gets an answer that asks to try again.
    TooLargeSaysUnknown,
    /// With several publishes in flight each gets the answer of another.
    AnswersSwapped,
    /// After one refused publish all others fail.
    BadPublishBreaksPublisher,
    /// A publish waits for its answer without a bound.
    PublishNeverEnds,
    /// A publish whose answer did not come is confirmed.
    UnknownSaysOk,
    /// A publish whose answer did not come is sent again.
    HiddenRetry,
    /// Each publish is kept twice.
    PublishTwice,
    /// A publish is confirmed and the message forgotten.
    PublishForgets,
    /// What was confirmed is forgotten when the broker restarts.
    RestartForgets,
    /// A cut connection ends the publisher.
    CutEndsPublisher,

    // Broker
    /// The source calls the product by another name than the broker.
    NamesDiffer,
    /// Opening waits for a broker that is away instead of saying so.
    OpenHangs,
    /// A broker that is away is called a setting that somebody must change.
    AwayIsFinal,
    /// Opening a source settles the first message.
    OpenSettles,
    /// Opening a source makes its queue.
    OpenDeclares,
    /// Declaring again empties the queue.
    DeclareEmpties,
    /// Declaring over other settings is accepted.
    DeclareAcceptsOther,
    /// A check makes what is missing.
    CheckDeclares,
    /// A check finds something although all is well.
    CheckCriesWolf,
    /// A check does not see that the source is missing.
    CheckBlindToSource,
    /// A check does not see that the dead-letter destination is missing.
    CheckBlindToDeadLetter,
    /// A check does not see that a route is missing.
    CheckBlindToRoute,
    /// A check does not see a limit that drops messages.
    CheckBlindToLimit,
    /// The dead-letter destination takes messages and keeps none.
    DeadLettersVanish,
    /// All consumers have one dead-letter destination.
    DeadLettersMixed,
    /// Handing out a dead letter removes it.
    DeadLettersLeave,
}
