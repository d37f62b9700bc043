#include "wire/places.h"

#include <gtest/gtest.h>

namespace longwire::wire {
namespace {

PlaceList Two() {
  return {{{"gpu1", "gpu1.example.org:7411", "ab12", std::string("\0\x7f\xff", 3), 2},
           {"gpu2", "gpu2.example.org:7411", "ab12-e1", "ticket", 1}}};
}

TEST(PlaceList, ComeBackAsTheyWere) {
  Writer writer;
  Two().Encode(writer);
  ASSERT_TRUE(IsPlaces(writer.span()));
  PlaceList read;
  Reader reader(writer.span());
  ASSERT_EQ(read.Decode(reader), WireResult::kOk);
  ASSERT_EQ(read.places.size(), 2u);
  EXPECT_EQ(read.places[0].ticket, Two().places[0].ticket);
  EXPECT_EQ(read.places[1].number, "ab12-e1");
  EXPECT_EQ(read.places[1].devices, 1u);
}

TEST(PlaceList, AnythingShorterIsNone) {
  Writer writer;
  Two().Encode(writer);
  for (size_t size = 0; size < writer.span().size(); ++size) {
    PlaceList read;
    Reader reader(writer.span().first(size));
    EXPECT_NE(read.Decode(reader), WireResult::kOk) << size;
  }
  PlaceList one = Two();
  one.places.pop_back();
  Writer short_writer;
  one.Encode(short_writer);
  Reader reader(short_writer.span());
  EXPECT_NE(one.Decode(reader), WireResult::kOk) << "one place needs no such message";
}

TEST(PlaceList, OneIsAText) {
  const std::string text = Two().places[0].Text();
  EXPECT_EQ(text, "ab12:007fff");
  std::string number, ticket;
  ASSERT_TRUE(ReadPlace(text, &number, &ticket));
  EXPECT_EQ(number, "ab12");
  EXPECT_EQ(ticket, Two().places[0].ticket);
  for (const char* bad : {"", ":", "ab12", "ab12:", ":00", "ab12:0", "ab12:0g", "ab12:0G"}) {
    EXPECT_FALSE(ReadPlace(bad, &number, &ticket)) << bad;
  }
}

}  // namespace
}  // namespace longwire::wire
