// Starts one of our programs from the warden's folder: with only the given descriptors, without
// gaining privileges (no_new_privs), in its own process group, killed when the warden dies.
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
  int error = -1;                        // its standard error; -1: the warden's own
};

struct Process {
  pid_t pid = 0;
  wire::Descriptor pidfd;
};

// The exit code of a program that could not be executed, with a line on its standard error.
constexpr int kNotStarted = 127;

// pid 0 with errno set on failure.
Process Spawn(const Program& program);

// True if processes can get a network namespace of their own on this host.
bool CanIsolateNetwork();
// False if this process and its children cannot open network sockets anyway.
bool HasNetwork();

void Kill(const Process& process);

// Reaps an ended process: true with its exit code (or -1) and signal (or 0).
bool Reap(const Process& process, int* exit_code, int* signal);
// What that says: "ended with code 1".
std::string HowItEnded(int exit_code, int signal);

}  // namespace longwire::warden
