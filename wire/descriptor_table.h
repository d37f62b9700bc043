// The table of this process's descriptors.
#pragma once

namespace longwire::wire {

inline constexpr int kDescriptorRoom = 4096;

// Raises the process's limit of descriptors to the hard limit, and makes the kernel's table large
// enough for kDescriptorRoom of them. Call it before other threads exist: with threads, the kernel
// waits for all processors (10 to 30 ms) before the table grows, and delays whichever thread opens
// or receives the descriptor that did not fit (this delayed leases on their way to a worker).
void PrepareDescriptorTable();

}  // namespace longwire::wire
