// Log lines as records of systemd's journal, with fields that it can be searched by:
//
//   MESSAGE            the line, without its time and its level
//   PRIORITY           syslog's number of the level: 3, 4, 6 or 7
//   SYSLOG_IDENTIFIER  longwired
//   LONGWIRE_SESSION   the session's number       } each
//   LONGWIRE_TENANT    the tenant's name          } only where
//   LONGWIRE_PEER      who is at the other end    } it is known
#pragma once

#include <string>
#include <vector>

#include "link/transport/log.h"

namespace longwire::daemon {

// Whether the descriptor is the stream to the journal that JOURNAL_STREAM's value (nullptr: there
// is none) names by its device and inode. A daemon whose standard error was redirected inherits the
// variable too.
bool IsJournalStream(int descriptor, const char* value);

// "NAME=value", in the order above.
std::vector<std::string> JournalFields(transport::LogLevel level,
                                       const transport::LogSubject& subject,
                                       const std::string& message);

// From here on, if standard error goes to the journal; else lines stay as they are.
void LogToJournal();

}  // namespace longwire::daemon
