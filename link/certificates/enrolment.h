// What client and signer say to each other over TLS: one request and one answer, each after a frame
// of four bytes, its length. And what `longwire invite` and the signer say at the signer's socket:
// one packet each way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "link/certificates/invitation.h"
#include "wire/buffer.h"

namespace longwire::certificates {

inline constexpr uint8_t kEnrolmentVersion = 1;
inline constexpr size_t kLengthBytes = 4;
// A request on P-256 has some 300 bytes, those of other people's tools below a thousand.
inline constexpr size_t kMaxRequestBytes = 8 << 10;
// Two certificates.
inline constexpr size_t kMaxAnswerBytes = 64 << 10;
inline constexpr size_t kMaxServerText = 300;  // a host's name has at most 253

// To certify the key of `signing_request` (DER).
struct Request {
  // kJoin: for whom the invitation with this secret is. kRenew: for whom the certificate is that
  // the client has shown in the handshake.
  enum class Kind : uint8_t { kJoin = 1, kRenew = 2 };
  Kind kind = Kind::kJoin;
  Secret secret{};
  std::string signing_request;

  void Encode(wire::Writer& writer) const;
  wire::WireResult Decode(wire::Reader& reader);
};

struct Answer {
  std::string problem;  // a sentence; empty: it is done
  std::string certificate;
  std::string authority;
  std::string server;  // where the daemon listens, "host:port"; may be empty

  void Encode(wire::Writer& writer) const;
  wire::WireResult Decode(wire::Reader& reader);
};

// Registers an invitation.
struct InviteRequest {
  std::string name;    // the identity
  std::string server;  // of the answer to the one who is invited
  uint32_t seconds = 0;

  void Encode(wire::Writer& writer) const;
  wire::WireResult Decode(wire::Reader& reader);
};

struct InviteAnswer {
  std::string problem;
  wire::Digest authority{};
  Secret secret{};
  uint16_t port = 0;  // where the signer listens

  void Encode(wire::Writer& writer) const;
  wire::WireResult Decode(wire::Reader& reader);
};

// The whole of `bytes` as a message; false if it is not exactly one.
template <class Message>
bool Unpack(std::span<const std::byte> bytes, Message* message) {
  wire::Reader reader(bytes);
  return message->Decode(reader) == wire::WireResult::kOk && reader.remaining() == 0;
}

template <class Message>
std::string Pack(const Message& message) {
  wire::Writer writer;
  message.Encode(writer);
  return {reinterpret_cast<const char*>(writer.data()), writer.size()};
}

// With its length in front.
std::string Frame(const std::string& message);

// Takes the bytes of one frame as they come.
class FrameReader {
 public:
  explicit FrameReader(size_t most) : most_(most) {}

  // kBroken: it is longer than `most`, has no bytes, or more follow it.
  enum class State { kPartial, kWhole, kBroken };
  State Add(std::span<const std::byte> bytes);
  // When kWhole.
  std::span<const std::byte> message() const { return std::span(bytes_).subspan(kLengthBytes); }

 private:
  const size_t most_;
  std::vector<std::byte> bytes_;
};

}  // namespace longwire::certificates
