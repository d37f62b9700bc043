#include "cli/operator/sessions.h"

#include <algorithm>
#include <array>
#include <vector>

#include "cli/status_json.h"
#include "cli/text.h"

namespace longwire::cli {
namespace {

constexpr size_t kColumns = 8;
using Row = std::array<std::string, kColumns>;

std::string DevicesOf(const transport::Session& session) {
  std::string list;
  for (const transport::Seat& seat : session.seats()) {
    list += (list.empty() ? "" : ",") + std::to_string(seat.device());
  }
  return list.empty() ? "-" : list;
}

}  // namespace

std::string SessionsText(const transport::InspectReply& reply) {
  std::vector<Row> rows = {
      {"SESSION", "TENANT", "IDENTITY", "FROM", "DEVICES", "MEMORY", "FOR", "PROGRAM"}};
  for (const transport::Session& session : reply.sessions()) {
    rows.push_back({std::to_string(session.id()), Printable(session.tenant()),
                    Printable(session.identity()), Printable(session.peer()), DevicesOf(session),
                    BytesText(session.leased()), SecondsText(session.seconds()),
                    Printable(session.program())});
  }
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    for (size_t i = 0; i + 1 < kColumns; ++i) {
      text += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    }
    text += row.back() + "\n";
  }
  return text;
}

std::string SessionsJson(const transport::InspectReply& reply) {
  std::string list;
  for (const transport::Session& session : reply.sessions()) {
    list += (list.empty() ? "" : ",") + MessageJson(session);
  }
  return "[" + list + "]";
}

}  // namespace longwire::cli
