// Starts one of our own programs beside the warden with nothing but the given descriptors, no way
// to gain privileges, its own process group, and an end when the warden ends.
#pragma once

#include <string>
#include <vector>

#include "wire/socket.h"

namespace longwire::warden {

struct Program {
  std::string path;
  std::vector<std::string> arguments;    // without the name itself
  std::vector<std::string> environment;  // NAME=value, added to the warden's own
  std::vector<int> descriptors;          // become 3, 4, … in the program
  bool own_network = false;              // an empty network namespace
};

struct Process {
  pid_t pid = 0;
  wire::Descriptor pidfd;
};

// pid 0 with errno set on failure. A program that cannot be executed ends with code 127.
Process Spawn(const Program& program);

// True if processes may be given a network namespace of their own here.
bool CanIsolateNetwork();
// False if this process and those it starts cannot open network sockets in the first place.
bool HasNetwork();

void Kill(const Process& process);

// Reaps an ended process: true with its exit code (or -1) and signal (or 0).
bool Reap(const Process& process, int* exit_code, int* signal);

}  // namespace longwire::warden
