// The user's settings: LONGWIRE_… environment variables, and the same keys as KEY=VALUE lines of
// /etc/longwire/client.conf; the environment wins. They are read once, at cuInit.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wire/client_settings.h"

namespace longwire::shim {

struct Options {
  // LONGWIRE_ACROSS: the program gets devices of every server in the list, not of the first that
  // answers (several_servers.h).
  bool across = false;
  int server_number = 0;   // of the server being asked, among these
  int server_count = 1;    // of these
  std::string program_id;  // the same at all of these; empty: there is one
  std::string server;      // LONGWIRE_SERVER: "host:port", "unix:path", a comma list; empty: none
  wire::IdentityFiles identity;   // LONGWIRE_CERT, LONGWIRE_KEY, LONGWIRE_CA or the usual files
  std::string link;               // LONGWIRE_LINK: the link's binary; empty: beside this library
  std::string runtime_directory;  // LONGWIRE_RUNTIME_DIR; empty: by XDG_RUNTIME_DIR or /tmp
  std::string compression;        // LONGWIRE_COMPRESSION: auto, none, lz4 or zstd
  // LONGWIRE_WAIT: how long to wait for room at the server; nullopt: as the server says
  std::optional<std::chrono::seconds> wait;
  std::string devices;     // LONGWIRE_DEVICES: how many to request; empty: the default
  std::string memory;      // LONGWIRE_MEMORY: needed on each device; empty: not said
  std::string time_limit;  // LONGWIRE_TIME_LIMIT: after it the server ends the session
  std::string labels;      // LONGWIRE_LABELS: of hosts in a pool, NAME=VALUE with commas
  bool same_host = false;  // LONGWIRE_SAME_HOST: of a pool, all devices of one host
  std::string place;       // of one of several places in a pool: as wire::Place has it
  std::string avoid;       // hosts that did not open what was placed there, with commas
  std::string request;     // while it waits: by what the pool knows that it asks again
  // LONGWIRE_LIVE_WORDS=independent: words that kernels reach count for themselves (words.h).
  bool independent_words = false;
  bool log = false;                // LONGWIRE_LOG: messages about events, on stderr
  bool trace_calls = false;        // LONGWIRE_TRACE=calls: one line per call on stderr
  bool trace_allocations = false;  // LONGWIRE_TRACE=allocations: one per allocation and free
  bool trace_summary = false;      // LONGWIRE_TRACE=summary: counts on stderr at exit
  std::string trace_file;          // LONGWIRE_TRACE_FILE: of trace events; empty: none
  uint64_t trace_file_limit = 0;   // LONGWIRE_TRACE_FILE_LIMIT: bytes
  std::vector<std::string> unknown_traces;  // other names in LONGWIRE_TRACE
  bool launch_blocking = false;             // CUDA_LAUNCH_BLOCKING
  // LONGWIRE_DISABLE: names of optimisations that are turned off (wire/switches.h).
  std::string disabled;
  uint64_t cached_uploads = 0;    // LONGWIRE_CACHE_UPLOADS: smallest copy that is cached; 0: none
  uint32_t lanes = 0;             // LONGWIRE_TRANSFER_STREAMS: number of lanes; 0: none
  uint64_t lane_copy_bytes = 0;   // LONGWIRE_TRANSFER_FROM: smallest copy that uses lanes, bytes
  uint64_t lane_chunk_bytes = 0;  // LONGWIRE_TRANSFER_CHUNK: largest piece, bytes
  uint32_t copy_threads = 1;      // LONGWIRE_COPY_THREADS: threads that copy the program's memory
  std::vector<uint64_t> window_bases;  // LONGWIRE_WINDOW_BASES, comma list, hexadecimal
  uint64_t window_bytes = 0;           // LONGWIRE_WINDOW_BYTES; 0: 16 TiB
};

// Reads the environment and the file.
Options ReadOptions(const char* configuration_path = "/etc/longwire/client.conf");

// The process's options, read at the first use, which also turns off the switches in `disabled`.
const Options& ProcessOptions();

// Prints one line with the prefix "longwire: " to stderr, unbuffered and with one write.
void Say(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace longwire::shim
