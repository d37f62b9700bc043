// longwire-simulate --pool.
#pragma once

namespace longwire::scheduler::simulate {

// The exit status. `words`: those of the command, with --pool.
int PoolMain(int count, char** words);

}  // namespace longwire::scheduler::simulate
