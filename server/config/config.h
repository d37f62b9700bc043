// longwired's configuration: read from YAML, completed from the command line and the schema's
// defaults, checked as a whole, written back. The schema is proto/config.proto.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "link/certificates/address.h"
#include "proto/config.pb.h"
#include "server/config/problems.h"

namespace longwire::config {

// Read when longwired is given no other, if it is there.
constexpr const char* kSystemFile = "/etc/longwire/longwired.yaml";
// In moves_from: the hosts of the server's pool.
constexpr const char* kMovesOfPool = "pool";

// The values given so far, and where each was given: "listen[0]", "tenants[2].name".
struct Draft {
  Config config;
  std::map<std::string, Place> places;
  std::vector<std::string> warnings;  // a line for each former name that is used
};

// Applies the YAML text of the file called `name`. A wrong value is left out and reported.
void ReadText(const std::string& name, const std::string& text, Draft* draft, Problems* problems);
// The same with the file's text.
void ReadFile(const std::string& path, Draft* draft, Problems* problems);

// Sets one of the outermost keys, or adds to it if it is a list and `place` has done so before.
void SetKey(const std::string& key, const std::string& text, const Place& place, Draft* draft,
            Problems* problems);

// Gives every key that is not set its default; by default the sockets lie in `runtime_folder`
// images in `cache_folder` and records of usage in `state_folder`, or nowhere when that is empty.
void FillDefaults(const std::string& runtime_folder, Config* config,
                  const std::string& cache_folder = "", const std::string& state_folder = "");

// Checks values against each other. Call it after FillDefaults.
void Check(const Draft& draft, Problems* problems);

// As a YAML file that reads as the same configuration.
std::string Write(const Config& config);

// A file that has every key with its help and its default or an example, all commented out.
std::string DefaultFile();

// Changes from `running` to `next` that need a restart of longwired; each is a problem.
void CheckReload(const Config& running, const Draft& next, Problems* problems);

// The keys that differ, a line for each: "max_sessions: '256' becomes '3'", "tenants: changed".
std::vector<std::string> Changes(const Config& running, const Config& next);

// Values as the types that their users need.
std::vector<transport::Address> ListenAddresses(const Config& config);
std::chrono::milliseconds ResumeGrace(const Config& config);
std::chrono::milliseconds CheckpointGrace(const Config& config);
// Empty when there is none.
std::string CheckpointFolder(const Config& config);
// Where the times of kernels are kept; empty: nowhere.
std::string KernelHistory(const Config& config);
// Whether other hosts can reach it.
bool LeavesHost(const Config& config);
// Sessions that one identity may open.
uint32_t OpeningsPerSecond(const Config& config);
// Empty when it is switched off.
std::string LocalSocketPath(const Config& config);

}  // namespace longwire::config
