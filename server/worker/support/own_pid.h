// The process's number for people and in its log lines: in namespaces of its own it has another.
#pragma once

namespace longwire::worker {

// getpid() until a number is set. Set it before there are threads.
void SetPid(int pid);
int Pid();

}  // namespace longwire::worker
