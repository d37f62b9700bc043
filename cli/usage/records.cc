#include "cli/usage/records.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/reason.h"
#include "cli/usage/options.h"
#include "server/daemon/usage/usage_file.h"

namespace longwire::cli::usage {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

// longwired's own are shorter than 8 KiB.
constexpr size_t kLongestLine = size_t{64} << 10;

const Value* Find(const Struct& object, const char* name) {
  auto found = object.fields().find(name);
  return found == object.fields().end() ? nullptr : &found->second;
}

bool TakeText(const Struct& object, const char* name, std::string* text) {
  const Value* value = Find(object, name);
  if (value == nullptr || value->kind_case() != Value::kStringValue) return false;
  *text = value->string_value();
  return true;
}

// null: *known becomes false.
bool TakeNumber(const Struct& object, const char* name, double* number, bool* known) {
  const Value* value = Find(object, name);
  if (value == nullptr) return false;
  if (value->kind_case() == Value::kNullValue) {
    *known = false;
    return true;
  }
  *number = value->number_value();
  return value->kind_case() == Value::kNumberValue && std::isfinite(*number) && *number >= 0;
}

struct CloseFile {
  void operator()(FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<FILE, CloseFile>;

// False at the end of the file. A longer line is left out, and *fits false.
bool ReadLine(FILE* file, std::string* line, bool* fits) {
  line->clear();
  *fits = true;
  int character = std::getc(file);
  if (character == EOF) return false;
  for (; character != EOF && character != '\n'; character = std::getc(file)) {
    *fits &= line->size() < kLongestLine;
    if (*fits) line->push_back(static_cast<char>(character));
  }
  return true;
}

// The newest first: if longwired begins a new one meanwhile, a file comes twice and is dropped
// here, but none is missed. Returned with the oldest first.
bool OpenAll(const std::string& name, std::vector<File>* files, std::string* sentence) {
  std::set<std::pair<dev_t, ino_t>> seen;
  for (uint32_t number = 0; number < daemon::UsageFile::kFiles; ++number) {
    const std::string path = daemon::UsageFile::NameOf(name, number);
    File file(std::fopen(path.c_str(), "re"));
    struct stat status {};
    if (file == nullptr && errno == ENOENT) continue;
    if (file == nullptr || fstat(fileno(file.get()), &status) != 0) {
      *sentence = path + " cannot be read: " + base::Reason(errno);
      if (errno == EACCES) *sentence += "; only root and longwired's own user may";
      return false;
    }
    if (S_ISDIR(status.st_mode)) {
      *sentence = path + " is a folder; give the file";
      return false;
    }
    if (seen.emplace(status.st_dev, status.st_ino).second) files->push_back(std::move(file));
  }
  if (!files->empty()) return true;
  *sentence =
      "there are no records: " + name +
      " is not there; longwired writes it where usage: {file: …} in its configuration says, "
      "once a session has ended. --file names another one";
  return false;
}

}  // namespace

std::optional<Record> ParseRecord(const std::string& line) {
  Struct object;
  if (!google::protobuf::util::JsonStringToMessage(line, &object).ok()) return std::nullopt;
  Record record;
  std::string ended;
  record.known = true;
  bool whole = TakeText(object, "identity", &record.identity) &&
               TakeText(object, "tenant", &record.tenant) &&
               TakeText(object, "program", &record.program) && TakeText(object, "ended", &ended) &&
               ParseTime(ended, 0, &record.ended) && Find(object, "session") != nullptr;
  whole = whole && TakeNumber(object, "gpu_seconds", &record.gpu_seconds, &record.known) &&
          TakeNumber(object, "memory_byte_hours", &record.memory_byte_hours, &record.known) &&
          TakeNumber(object, "bytes_up", &record.bytes_up, &record.known) &&
          TakeNumber(object, "bytes_down", &record.bytes_down, &record.known) &&
          TakeNumber(object, "calls", &record.calls, &record.known);
  const Value* estimated = Find(object, "memory_estimated");
  record.estimated = estimated != nullptr && estimated->bool_value();
  return whole ? std::optional(std::move(record)) : std::nullopt;
}

bool ReadRecords(const std::string& file, const std::function<void(const Record&)>& take,
                 Read* read, std::string* sentence) {
  std::vector<File> files;
  if (!OpenAll(file, &files, sentence)) return false;
  read->files = static_cast<uint32_t>(files.size());
  for (auto one = files.rbegin(); one != files.rend(); ++one) {
    std::string line;
    for (bool fits = true; ReadLine(one->get(), &line, &fits);) {
      ++read->lines;
      auto record = fits ? ParseRecord(line) : std::nullopt;
      if (record) {
        take(*record);
      } else {
        ++read->damaged;
      }
    }
    if (std::ferror(one->get()) != 0) {
      *sentence = file + " cannot be read to its end: " + base::Reason(errno);
      return false;
    }
  }
  return true;
}

}  // namespace longwire::cli::usage
