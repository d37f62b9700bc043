// Log lines as records of systemd's journal, with fields that it can be searched by:
//
//   MESSAGE            the line, without its time and its level
//   PRIORITY           syslog's number of the level: 3, 4, 6 or 7
//   SYSLOG_IDENTIFIER  longwired
//   LONGWIRE_SESSION   the session's number       } each
//   LONGWIRE_TENANT    the tenant's name          } only where
//   LONGWIRE_PEER      who is at the other end    } it is known
//
// and those that the line brings (server/daemon/usage/usage_record.cc).
#pragma once

#include <string>
#include <vector>

#include "link/transport/log.h"

namespace longwire::daemon {

// True if the descriptor is the stream that JOURNAL_STREAM's value names by device and inode
// (nullptr: it is not set). A daemon whose standard error was redirected inherits the variable,
// too.
bool IsJournalStream(int descriptor, const char* value);

// "NAME=value", in the order above.
std::vector<std::string> JournalFields(transport::LogLevel level,
                                       const transport::LogSubject& subject,
                                       const std::string& message);

// Sends log lines as records from now on, if standard error goes to the journal.
void LogToJournal();

}  // namespace longwire::daemon
