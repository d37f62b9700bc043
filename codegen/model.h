// The typed model of the call description: what the emitters work on. load.cc makes it from the
// protobuf descriptors, rules.cc derives the wire fields and refuses what makes no sense.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace longwire::codegen {

// Where something stands in the description.
struct Location {
  std::string file;
  int line = 0;  // from 1
  std::string Text() const { return file + ":" + std::to_string(line); }
};

// Collects errors; generation fails if there is one.
class Errors {
 public:
  void Add(const Location& location, const std::string& sentence) {
    list_.push_back(location.Text() + ": " + sentence);
  }
  bool empty() const { return list_.empty(); }
  const std::vector<std::string>& list() const { return list_; }

 private:
  std::vector<std::string> list_;
};

enum class TypeKind {
  kScalar,
  kEnum,
  kHandle,
  kDevice,
  kStruct,
  kHasPointers,
  kRecord,
  kString,
  kBytes
};

struct Type {
  std::string name;
  TypeKind kind = TypeKind::kHasPointers;
  std::string c;     // as C spells it
  std::string wire;  // kScalar: u8 … f64, bool
  int bytes = 0;     // kStruct
  Location location;
};

// One field of an encoded struct. `element` is a scalar's wire type, "string", "bytes", "blob" (a
// fixed number of bytes) or "record".
struct WireField {
  std::string name;
  std::string element;
  int bytes = 0;       // blob
  std::string record;  // record
  bool repeated = false;
  bool optional = false;
};

enum class Role {
  kNone,       // no rule: hand-written and unsupported calls only
  kStream,     // the stream in the record's header
  kValue,      // scalar, enum, device or struct by value
  kHandle,     // handle by value
  kIn,         // const T* to one value
  kOut,        // T* that the call writes
  kInOut,      // T* that the call reads and writes
  kInArray,    // const T*, `count` elements
  kOutArray,   // T*, room for `count` elements
  kInString,   // const char*
  kOutString,  // char*, room for `count` bytes
};

struct Parameter {
  std::string name;
  const Type* type = nullptr;
  bool in = false, out = false, inout = false, nullable = false, repeated = false;
  std::string count;    // the parameter with the number of elements
  int count_minus = 0;  // subtracted from that parameter
  std::string c_type;   // spelled out by the author
  std::string if_null;  // the code that refuses null
  bool behind_pointers = false;
  Role role = Role::kNone;
  Location location;

  // The parameter's type in C.
  std::string CType() const;
};

enum class Kind { kAtOnce, kAfterReply, kLocal, kUnsupported };
enum class Body { kGenerated, kHandWritten, kWrapped };
enum class PerThread { kNone, kPtsz, kPtds };
enum class RunsOn { kByKind, kLogThread, kLinkerThread, kMemoryThread, kClientThread };
enum class HeldUntil { kNothing, kIssued, kFinished, kStreamDrained };

struct Call {
  std::string symbol;
  std::string base;  // what cuGetProcAddress is asked for
  std::string chapter;
  int number = 0;
  Kind kind = Kind::kLocal;
  Body body = Body::kGenerated;
  PerThread per_thread = PerThread::kNone;
  std::string unsupported, same_as, destroys, without_session;
  int introduced = 0, introduced_per_thread = 0;
  // Options that say yes or no (options.h).
  bool before_init = false, capture_unsafe = false, implicit_stream = false;
  bool worker_hand_written = false, stream_ordered = false;
  bool needs_context = false, looks_first = false;
  bool carries_bulk_bytes = false, may_pass_deferred = false, ends_by_itself = false;
  bool pulls_may_pass = false, gated = false, works_when_failed = false, passes_maps = false;
  bool needs_no_memory = false, returns_memory = false, rebuilds = false, leaves_nothing = false;
  bool lasting_answer = false;
  // As written; ThreadOf() and HoldOf() say what holds.
  RunsOn runs_on = RunsOn::kByKind;
  HeldUntil held_until = HeldUntil::kNothing;
  bool is_private = false;
  bool newest = false;  // no other variant of the same base name is newer
  std::vector<Parameter> parameters;
  std::vector<Parameter> reply_parameters;  // private calls
  std::vector<WireField> request, reply;    // if it travels
  Location location;

  bool IsUnsupported() const { return kind == Kind::kUnsupported; }
  // Has a struct, an encoding and a place in the worker's dispatch.
  bool Travels() const;
  // The client's side is shim::forward::X.
  bool IsForwarded() const { return !is_private && Travels(); }
  bool HasHandBody() const;
  // The worker's side is worker::Do_X, written by hand.
  bool HasHandWorker() const { return worker_hand_written || is_private; }
  HeldUntil HoldOf() const;
  RunsOn ThreadOf() const;  // never kByKind
  const char* PerThreadSuffix() const { return per_thread == PerThread::kPtds ? "_ptds" : "_ptsz"; }
};

struct Record {
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<WireField> fields;
  Location location;
};

struct Api {
  std::map<std::string, Type> types;
  std::vector<Record> records;
  std::vector<Call> calls;  // in the order of their numbers
  const Call* Find(const std::string& symbol) const;
};

}  // namespace longwire::codegen
