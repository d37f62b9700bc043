// What the user configures: LONGWIRE_… environment variables, and the same keys as KEY=VALUE lines
// of /etc/longwire/client.conf; the environment wins. Read once, at cuInit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/client_settings.h"

namespace longwire::shim {

struct Options {
  std::string server;  // LONGWIRE_SERVER: "host:port", "unix:path", a comma list; empty: none
  wire::IdentityFiles identity;    // LONGWIRE_CERT, LONGWIRE_KEY, LONGWIRE_CA or where they lie
  std::string link;                // LONGWIRE_LINK: the link's binary; empty: beside this library
  std::string runtime_directory;   // LONGWIRE_RUNTIME_DIR; empty: by XDG_RUNTIME_DIR or /tmp
  std::string compression;         // LONGWIRE_COMPRESSION: auto, none, lz4 or zstd
  std::string devices;             // LONGWIRE_DEVICES: how many to ask for; empty: as usual
  bool log = false;                // LONGWIRE_LOG: sentences about what happens, on stderr
  bool trace_calls = false;        // LONGWIRE_TRACE=calls: one line per call on stderr
  bool trace_allocations = false;  // LONGWIRE_TRACE=allocations: one per allocation and free
  bool trace_summary = false;      // LONGWIRE_TRACE=summary: counts on stderr at exit
  std::vector<std::string> unknown_traces;  // what else LONGWIRE_TRACE names
  bool launch_blocking = false;             // CUDA_LAUNCH_BLOCKING
  // LONGWIRE_DISABLE: names of single optimisations that are switched off (wire/switches.h).
  std::string disabled;
  uint64_t kept_uploads = 0;      // LONGWIRE_KEEP_UPLOADS: smallest copy that is kept; 0: none
  uint32_t lanes = 0;             // LONGWIRE_TRANSFER_STREAMS: these connections; 0: none
  uint64_t lane_copy_bytes = 0;   // LONGWIRE_TRANSFER_FROM: which copies are large, in bytes
  uint64_t lane_chunk_bytes = 0;  // LONGWIRE_TRANSFER_CHUNK: largest piece, bytes
  uint32_t copy_threads = 1;  // LONGWIRE_COPY_THREADS: that copy from the program's memory at once
  std::vector<uint64_t> window_bases;  // LONGWIRE_WINDOW_BASES, comma list, hexadecimal
  uint64_t window_bytes = 0;           // LONGWIRE_WINDOW_BYTES; 0: 16 TiB
};

// Reads the environment and the file.
Options ReadOptions(const char* configuration_path = "/etc/longwire/client.conf");

// The process's options, read at the first use. What they switch off is off from then on
// (wire/switches.h).
const Options& ProcessOptions();

// One line on stderr, "longwire: " in front. Never buffered, never more than one write.
void Say(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace longwire::shim
