// Asks the daemon of this host through its control socket (server/daemon/control.h), which serves
// root, the daemon's own user and its admin_group without a certificate.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace longwire::daemon {

// One packet asks: kReloadWord, or kCallWord and an encoded transport::ControlRequest. The answer
// to the first is kDoneWord or kRefusedWord and a sentence on each further line; to the second
// kRefusedWord and a sentence, or kReplyWord, a size in decimal and a line's end, and then as many
// bytes of an encoded transport::ControlReply in packets of their own.
inline constexpr std::string_view kReloadWord = "reload";
inline constexpr std::string_view kCallWord = "call\n";
inline constexpr std::string_view kDoneWord = "done\n";
inline constexpr std::string_view kRefusedWord = "refused\n";
inline constexpr std::string_view kReplyWord = "reply\n";
inline constexpr size_t kMaxControlReply = 256 << 20;

// The path of the control socket of this user's daemon.
std::string ControlPath();
// Where a daemon of this host may have its control socket: this user's own, the system's.
std::vector<std::string> ControlPaths();

// The daemon reads and checks files, or waits for its warden.
inline constexpr std::chrono::seconds kControlPatience{30};

// The encoded reply to an encoded request. False with a sentence, also for a refusal; *absent: no
// process answers there.
bool AskControl(const std::string& path, const std::string& request, std::chrono::seconds patience,
                std::string* reply, std::string* sentence, bool* absent);

// Asks the daemon whose control socket is at `path`. False if the reload was refused or there is no
// answer; *text has the reasons, a line each.
bool AskForReload(const std::string& path, std::string* text);

}  // namespace longwire::daemon
