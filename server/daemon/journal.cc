#include "server/daemon/journal.h"

#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <unistd.h>

#include <cstdlib>

// Else each record names the line of this file.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "base/printable.h"

namespace longwire::daemon {
namespace {

using transport::LogLevel;
using transport::LogSubject;

int PriorityOf(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return LOG_ERR;
    case LogLevel::kWarning:
      return LOG_WARNING;
    case LogLevel::kInfo:
      return LOG_INFO;
    case LogLevel::kDebug:
      return LOG_DEBUG;
  }
  return LOG_ERR;
}

bool SendToJournal(LogLevel level, const LogSubject& subject, const std::string& message) {
  std::vector<std::string> fields = JournalFields(level, subject, message);
  std::vector<iovec> parts;
  for (std::string& field : fields) parts.push_back({field.data(), field.size()});
  return sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) == 0;
}

}  // namespace

bool IsJournalStream(int descriptor, const char* value) {
  struct stat file {};
  if (value == nullptr || fstat(descriptor, &file) != 0) return false;
  return value == std::to_string(file.st_dev) + ':' + std::to_string(file.st_ino);
}

std::vector<std::string> JournalFields(LogLevel level, const LogSubject& subject,
                                       const std::string& message) {
  std::vector<std::string> fields = {"MESSAGE=" + message,
                                     "PRIORITY=" + std::to_string(PriorityOf(level)),
                                     "SYSLOG_IDENTIFIER=longwired"};
  if (subject.session != 0) fields.push_back("LONGWIRE_SESSION=" + std::to_string(subject.session));
  auto add = [&](const std::string& name, std::string_view text) {
    if (!text.empty()) fields.push_back(name + base::Printable(text));
  };
  add("LONGWIRE_TENANT=", subject.tenant);
  add("LONGWIRE_PEER=", subject.peer);
  if (subject.fields == nullptr) return fields;
  for (const auto& [name, value] : *subject.fields) {
    add("LONGWIRE_" + std::string(name) + "=", value);
  }
  return fields;
}

void LogToJournal() {
  if (!IsJournalStream(STDERR_FILENO, std::getenv("JOURNAL_STREAM"))) return;
  transport::SetLogSink(SendToJournal);
}

}  // namespace longwire::daemon
