// The schema itself: what it says about each key has to make sense.
#include "server/config/schema.h"

#include <gtest/gtest.h>

#include <functional>

#include "server/config/values.h"

namespace longwire::config {
namespace {

void ForEachField(const google::protobuf::Descriptor* message,
                  const std::function<void(const FieldDescriptor*)>& look) {
  for (int i = 0; i < message->field_count(); ++i) {
    const FieldDescriptor* field = message->field(i);
    look(field);
    if (IsBlock(field)) ForEachField(field->message_type(), look);
  }
}

TEST(SchemaTest, EveryKeyIsExplainedAndOfAKnownType) {
  int count = 0;
  ForEachField(Config::descriptor(), [&](const FieldDescriptor* field) {
    ++count;
    EXPECT_FALSE(EntryOf(field).help().empty()) << field->full_name();
    EXPECT_TRUE(IsBlock(field) || field->is_repeated() || field->has_presence())
        << field->full_name() << " is not optional: nobody can see whether it was said";
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL:
      case FieldDescriptor::CPPTYPE_ENUM:
      case FieldDescriptor::CPPTYPE_MESSAGE:
      case FieldDescriptor::CPPTYPE_STRING:
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
      case FieldDescriptor::CPPTYPE_UINT64:
        EXPECT_FALSE(field->is_repeated()) << field->full_name();
        break;
      default:
        ADD_FAILURE() << field->full_name() << " has a type that the reader does not know";
    }
  });
  EXPECT_GT(count, 30);
}

TEST(SchemaTest, DefaultsAreWhatIsExpected) {
  ForEachField(Config::descriptor(), [](const FieldDescriptor* field) {
    const Entry& entry = EntryOf(field);
    if (IsBlock(field)) return;
    EXPECT_NE(entry.default_value().empty(), entry.example().empty())
        << field->full_name() << " needs a default or an example, not both";
    if (entry.default_value().empty()) return;
    EXPECT_FALSE(entry.required()) << field->full_name();
    Config config;
    std::unique_ptr<Message> message(google::protobuf::MessageFactory::generated_factory()
                                         ->GetPrototype(field->containing_type())
                                         ->New());
    std::string hint;
    EXPECT_TRUE(SetValue(entry.default_value(), field, message.get(), &hint))
        << field->full_name() << ": " << hint;
    EXPECT_EQ(ValueText(*message, field, 0), entry.default_value()) << field->full_name();
  });
}

TEST(SchemaTest, WhatIsExpectedIsSaidInWords) {
  auto expected = [](const google::protobuf::Descriptor* message, const char* name) {
    return Expected(message->FindFieldByName(name));
  };
  EXPECT_EQ(expected(Config::descriptor(), "listen"), "host:port, or a list of such");
  EXPECT_EQ(expected(Config::descriptor(), "local_socket"), "an absolute path or none");
  EXPECT_EQ(expected(Config::descriptor(), "placement"), "pack, spread or least_loaded");
  EXPECT_EQ(expected(Config::descriptor(), "warm_workers"), "a number from 0 to 64");
  EXPECT_EQ(expected(Config::descriptor(), "devices"),
            "a list, each element with keys (device or warm_workers)");
  EXPECT_EQ(expected(Scheduler::descriptor(), "turn"),
            "a time such as 30s, 2ms or 50us, from 100us to 10s");
  EXPECT_EQ(expected(Tenant::descriptor(), "memory"),
            "a size such as 512MiB, at least 2MiB, a multiple of 2MiB");
  EXPECT_EQ(expected(Tenant::descriptor(), "admin"), "true or false");
}

TEST(SchemaTest, ClosestWord) {
  const std::vector<std::string> known = {"listen", "driver", "max_sessions", "resume_grace"};
  EXPECT_EQ(Closest("lissten", known), "listen");
  EXPECT_EQ(Closest("Listen", known), "listen");
  EXPECT_EQ(Closest("max-sessions", known), "max_sessions");
  EXPECT_EQ(Closest("resume_grace_seconds", known), "resume_grace");
  EXPECT_EQ(Closest("drivr", known), "driver");
  EXPECT_EQ(Closest("x", known), "");
  EXPECT_EQ(Closest("quota", known), "");
  EXPECT_EQ(Closest("", known), "");
  EXPECT_EQ(Closest(std::string(1'000'000, 'x'), known), "");
}

}  // namespace
}  // namespace longwire::config
