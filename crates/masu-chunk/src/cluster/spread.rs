//! Data that a cluster can cut into chunks: the part of a chunk that is sent, and the way a process opens it.
//!
//! Relies on the [readers](crate::reader). The two ends of a source are apart: the *feed* in the first process is
//! pulled from, and the *opener* in every process turns the sent part into the function's data, the same as in a job
//! of one process.

use std::io::{self, Read};
use std::ops::Range;

use timely::ExchangeData;

use crate::executor::Executor;
use crate::place::Place;
use crate::reader::{Block, Blocks, Items, Records};
use crate::stream::Pull;

/// Data that a cluster's job goes through. Only the sources that [`super::Cluster`]'s methods make implement this
/// trait.
pub trait Spread: sealed::Sealed {
    /// The data of a chunk, as a function gets it.
    type Data;
    #[doc(hidden)]
    type Sent: ExchangeData + Clone;
    #[doc(hidden)]
    type Feed: Pull<Data = Self::Sent>;
    #[doc(hidden)]
    type Opener: Open<Self::Sent, Data = Self::Data> + Sync;

    #[doc(hidden)]
    fn split(self, executor: &Executor<'_>) -> (Self::Feed, Self::Opener);
}

/// Turns the sent part of a chunk into its data.
pub trait Open<Sent> {
    /// The data, as a function gets it.
    type Data;

    fn open(&self, place: &Place, sent: Sent) -> Result<Self::Data, String>;
}

mod sealed {
    use super::*;
    pub trait Sealed {}
    impl Sealed for SpreadNumbers {}
    impl<T> Sealed for SpreadSlice<'_, T> {}
    impl<I> Sealed for SpreadItems<I> {}
    impl<R> Sealed for SpreadBlocks<R> {}
    impl<R> Sealed for SpreadRecords<R> {}
}

/// Chunks that are sent as their place only.
pub struct Places {
    left: u64,
    chunk: u64,
}

impl Pull for Places {
    type Data = ();

    fn pull(&mut self) -> io::Result<Option<((), u64)>> {
        let count = self.left.min(self.chunk);
        self.left -= count;
        Ok((count > 0).then_some(((), count)))
    }
}

/// Numbers that are spread over members.
pub struct SpreadNumbers(pub(super) Range<u64>);

impl Spread for SpreadNumbers {
    type Data = Range<u64>;
    type Sent = ();
    type Feed = Places;
    type Opener = FirstNumber;

    fn split(self, executor: &Executor<'_>) -> (Places, FirstNumber) {
        let left = self.0.end.saturating_sub(self.0.start);
        (
            Places { left, chunk: executor.chunk_of(left, size_of::<u64>()) },
            FirstNumber(self.0.start),
        )
    }
}

pub struct FirstNumber(u64);

impl Open<()> for FirstNumber {
    type Data = Range<u64>;

    fn open(&self, place: &Place, (): ()) -> Result<Range<u64>, String> {
        Ok(self.0 + place.items.start..self.0 + place.items.end)
    }
}

/// A slice that every process has.
pub struct SpreadSlice<'d, T>(pub(super) &'d [T]);

impl<'d, T: Sync> Spread for SpreadSlice<'d, T> {
    type Data = &'d [T];
    type Sent = ();
    type Feed = Places;
    type Opener = &'d [T];

    fn split(self, executor: &Executor<'_>) -> (Places, &'d [T]) {
        let left = self.0.len() as u64;
        (Places { left, chunk: executor.chunk_of(left, size_of::<T>()) }, self.0)
    }
}

impl<'d, T> Open<()> for &'d [T] {
    type Data = &'d [T];

    fn open(&self, place: &Place, (): ()) -> Result<&'d [T], String> {
        let items = place.items.start as usize..place.items.end as usize;
        self.get(items).ok_or_else(|| {
            let len = self.len();
            format!("the slice of this process has {len} items, that of the first one has more")
        })
    }
}

/// An iterator of the first process.
pub struct SpreadItems<I>(pub(super) Items<I>);

impl<I> Spread for SpreadItems<I>
where
    I: Iterator + Send,
    I::Item: ExchangeData + Clone,
{
    type Data = Vec<I::Item>;
    type Sent = Vec<I::Item>;
    type Feed = Items<I>;
    type Opener = AsSent;

    fn split(self, _: &Executor<'_>) -> (Items<I>, AsSent) {
        (self.0, AsSent)
    }
}

/// An opener that returns the sent part unchanged: it is the data.
pub struct AsSent;

impl<T> Open<Vec<T>> for AsSent {
    type Data = Vec<T>;

    fn open(&self, _: &Place, items: Vec<T>) -> Result<Vec<T>, String> {
        Ok(items)
    }
}

/// A reader of the first process, cut anywhere.
pub struct SpreadBlocks<R>(pub(super) Blocks<R>);

/// A reader of the first process, cut after delimiters.
pub struct SpreadRecords<R>(pub(super) Records<R>);

/// The bytes of a block, and the byte before them.
type SentBlock = (Vec<u8>, Option<u8>);

/// Blocks without their reused buffers, because sent bytes leave the process anyway.
pub struct Unbuffered<P>(P);

impl<P: Pull<Data = Block>> Pull for Unbuffered<P> {
    type Data = SentBlock;

    fn pull(&mut self) -> io::Result<Option<(SentBlock, u64)>> {
        Ok(self.0.pull()?.map(|(block, count)| ((block.to_vec(), block.before()), count)))
    }
}

impl<R: Read + Send> Spread for SpreadBlocks<R> {
    type Data = Block;
    type Sent = SentBlock;
    type Feed = Unbuffered<Blocks<R>>;
    type Opener = AsBlock;

    fn split(self, _: &Executor<'_>) -> (Self::Feed, AsBlock) {
        (Unbuffered(self.0), AsBlock)
    }
}

impl<R: Read + Send> Spread for SpreadRecords<R> {
    type Data = Block;
    type Sent = SentBlock;
    type Feed = Unbuffered<Records<R>>;
    type Opener = AsBlock;

    fn split(self, _: &Executor<'_>) -> (Self::Feed, AsBlock) {
        (Unbuffered(self.0), AsBlock)
    }
}

/// Blocks as a local reader would give them.
pub struct AsBlock;

impl Open<SentBlock> for AsBlock {
    type Data = Block;

    fn open(&self, _: &Place, (bytes, before): SentBlock) -> Result<Block, String> {
        Ok(Block::sent(bytes, before))
    }
}
