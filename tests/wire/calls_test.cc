// Every call and reply that travels: encoding and decoding agree, and no bytes whatever make the
// decoder read outside of them (run with the address sanitizer to see that).
#include <gtest/gtest.h>

#include <memory>

#include "longwire/printer.h"
#include "tests/wire/values.h"

namespace longwire::calls {
namespace {

// A copy that ends where its memory ends, so that a sanitizer sees a read behind it.
struct Exact {
  explicit Exact(std::span<const std::byte> from)
      : size(from.size()), bytes(new std::byte[from.size()]) {
    std::copy(from.begin(), from.end(), bytes.get());
  }
  std::span<const std::byte> span() const { return {bytes.get(), size}; }
  size_t size;
  std::unique_ptr<std::byte[]> bytes;
};

struct Decoded {
  wire::WireResult result = wire::WireResult::kFatal;
  size_t remaining = 0;
  std::vector<std::byte> again;  // kOk: what was decoded, encoded once more
};

// What the checks below do with a type. They are compiled once, this for each of hundreds.
struct Codec {
  const char* name;
  // A value filled from the seed; *counted: the bytes that it says it takes.
  std::vector<std::byte> (*encode)(uint32_t seed, size_t* counted);
  Decoded (*decode)(std::span<const std::byte> bytes);
};

template <class T>
Codec CodecOf(const char* name) {
  return {name,
          [](uint32_t seed, size_t* counted) {
            Filler filler(seed);
            T value;
            VisitFields(value, filler);
            *counted = value.EncodedBytes();
            return Encoded(value);
          },
          [](std::span<const std::byte> bytes) {
            T value;
            wire::Reader reader(bytes);
            Decoded decoded;
            decoded.result = value.Decode(reader);
            decoded.remaining = reader.remaining();
            if (decoded.result == wire::WireResult::kOk) decoded.again = Encoded(value);
            return decoded;
          }};
}

// All calls and all replies.
const std::vector<Codec>& Codecs() {
  static const std::vector<Codec> codecs = [] {
    std::vector<Codec> all;
    ForEachCall([&all]<class Call>(const char* name) {
      all.push_back(CodecOf<Call>(name));
      all.push_back(CodecOf<typename Call::Reply>(name));
    });
    return all;
  }();
  return codecs;
}

std::vector<std::byte> Encode(const Codec& codec, uint32_t seed) {
  size_t counted = 0;
  std::vector<std::byte> bytes = codec.encode(seed, &counted);
  EXPECT_EQ(bytes.size(), counted) << codec.name;
  return bytes;
}

TEST(Calls, DecodeWhatWasEncoded) {
  EXPECT_GT(Codecs().size(), 300u);
  for (const Codec& codec : Codecs()) {
    for (uint32_t seed = 1; seed <= 20; ++seed) {
      const std::vector<std::byte> bytes = Encode(codec, seed);
      const Decoded decoded = codec.decode(bytes);
      ASSERT_EQ(decoded.result, wire::WireResult::kOk) << codec.name;
      EXPECT_EQ(decoded.remaining, 0u) << codec.name;
      EXPECT_EQ(decoded.again, bytes) << codec.name;
    }
  }
}

// Every prefix fails: none is what a shorter value would have made.
TEST(Calls, RefuseBytesThatEndTooEarly) {
  for (const Codec& codec : Codecs()) {
    const std::vector<std::byte> bytes = Encode(codec, 7);
    for (size_t length = 0; length < bytes.size(); ++length) {
      const Exact exact(std::span<const std::byte>(bytes).first(length));
      EXPECT_EQ(codec.decode(exact.span()).result, wire::WireResult::kFatal)
          << codec.name << ", " << length << " bytes";
    }
  }
}

TEST(Calls, SurviveCorruptedBytes) {
  for (const Codec& codec : Codecs()) {
    const std::vector<std::byte> bytes = Encode(codec, 11);
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (const int flip : {0x01, 0x80, 0xff}) {
        Exact exact(bytes);
        exact.bytes[at] ^= static_cast<std::byte>(flip);
        EXPECT_LE(codec.decode(exact.span()).again.size(), bytes.size())
            << codec.name << ", byte " << at;
      }
    }
  }
}

// Counts and lengths of 2^32 - 1 with nothing behind them are refused before memory is taken.
TEST(Calls, RefuseCountsThatCannotBe) {
  const std::vector<std::byte> ones(256, std::byte{0xff});
  const Exact exact(ones);
  lwLease lease;
  wire::Reader reader(exact.span());
  EXPECT_EQ(lease.Decode(reader), wire::WireResult::kFatal);
  lwModuleLoad::Reply reply;
  wire::Reader functions(exact.span());
  EXPECT_EQ(reply.Decode(functions), wire::WireResult::kFatal);
}

TEST(Calls, AFixedBufferThatIsTooSmallOverflowsCleanly) {
  Filler filler(3);
  lwLaunch launch;
  VisitFields(launch, filler);
  for (size_t room = 0; room < launch.EncodedBytes(); ++room) {
    const std::unique_ptr<std::byte[]> memory(new std::byte[room]);
    wire::Writer writer(std::span(memory.get(), room));
    launch.Encode(writer);
    EXPECT_TRUE(writer.overflowed()) << room;
    EXPECT_LE(writer.size(), room);
  }
}

void CheckNumber(CallId id, const char* name) {
  EXPECT_STREQ(CallName(id), name);
  EXPECT_NE(CallKind(id), CallKindValue::kUnsupported) << name;
  EXPECT_NE(CallKind(id), CallKindValue::kLocal) << name;
  EXPECT_EQ(CallIsPrivate(id), std::string_view(name).starts_with("lw")) << name;
}

TEST(Calls, HaveTheirOwnNumbersNamesAndKinds) {
  std::vector<uint16_t> numbers;
  ForEachCall([&numbers]<class Call>(const char* name) {
    CheckNumber(Call::kId, name);
    numbers.push_back(static_cast<uint16_t>(Call::kId));
  });
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
  EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end());
  EXPECT_STREQ(CallName(static_cast<CallId>(65535)), "?");
  EXPECT_STREQ(CallName(CallId::kNone), "?");
  EXPECT_STRNE(CallRefusal(CallId::cuMulticastCreate), "");
}

void CheckPrint(CallId id, const Codec& codec) {
  const std::vector<std::byte> bytes = Encode(codec, 5);
  const std::string line = PrintCall(id, wire::Reader{std::span<const std::byte>(bytes)});
  EXPECT_TRUE(line.starts_with(std::string(codec.name) + "(")) << line;
  EXPECT_EQ(line.find("…)"), std::string::npos) << line;
  for (size_t length = 0; length < bytes.size(); ++length) {
    const Exact exact(std::span<const std::byte>(bytes).first(length));
    EXPECT_NE(PrintCall(id, wire::Reader(exact.span())), line);
  }
}

TEST(Calls, PrintAnyBytes) {
  ForEachCall([]<class Call>(const char* name) { CheckPrint(Call::kId, CodecOf<Call>(name)); });
}

}  // namespace
}  // namespace longwire::calls
