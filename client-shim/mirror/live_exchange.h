// Exchange of mirrored memory while work runs: flags, counters, and what else is one aligned word
// at a time.
//
// Elsewhere the two sides exchange what has changed at the borders of work (mirrors.h). A thread
// here looks at both sides while work runs longer than a moment. It passes on only states in which
// one aligned word has changed and nothing else, since the other side looks meanwhile, and two
// words cannot become visible at once (docs/host-memory.md#while-work-runs). Of much memory, and
// of managed memory alone, only the program's words are passed on so. All other changes wait until
// work stands still, where they are passed on as a whole, or for the border. One state is on its
// way at a time, and both directions go through the mirrors' own stream, so states arrive in their
// order.
#pragma once

namespace longwire::shim {

// Starts the thread, at the first call; with LONGWIRE_DISABLE=live-exchange there is none.
void WatchRunningWork();

}  // namespace longwire::shim
