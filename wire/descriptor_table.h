// The table of this process's descriptors.
#pragma once

namespace longwire::wire {

inline constexpr int kDescriptorRoom = 4096;

// Lets the process have as many descriptors as it may, and makes room for the first
// kDescriptorRoom of them. Before there are other threads: with them the system lets the table grow
// only after a wait for all processors, 10 to 30 ms, and whoever opens or receives the one that
// found no room waits along (a lease of memory did, on its way to a worker).
void PrepareDescriptorTable();

}  // namespace longwire::wire
