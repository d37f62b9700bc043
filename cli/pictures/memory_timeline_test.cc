// The picture of memory over time: its clock, its legend, and that it fits.
#include <gmock/gmock.h>

#include <cstdlib>
#include <regex>

#include "cli/memory.h"
#include "cli/pictures/clock_text.h"

namespace longwire::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kStart = 1'795'732'200;  // 2026-11-26 22:30:00 UTC
constexpr uint64_t kGiB = 1ULL << 30;

MemoryHistory TenSeconds(const std::string& name) {
  MemoryHistory history;
  history.title = "device 0  NVIDIA H200";
  history.total = 16 * kGiB;
  history.names[7] = name;
  for (int i = 0; i <= 100; ++i) {
    history.samples.push_back({kStart + 0.1 * i, {{7, 4 * kGiB}}, kGiB, 0});
  }
  transport::MemoryEvent event;
  event.set_kind("lease");
  event.set_seconds(kStart + 2.25);
  event.set_session(7);
  history.events.push_back(event);
  return history;
}

class TimelineTest : public testing::Test {
 protected:
  TimelineTest() {
    setenv("TZ", "UTC", 1);
    tzset();
  }
};

TEST_F(TimelineTest, HasTheTimesOfTheClock) {
  const std::string svg = MemoryTimeline({TenSeconds("a program")}, false);
  EXPECT_THAT(svg, HasSubstr("2026-11-26, 22:30:00 to 22:30:10 UTC"));
  for (const char* mark : {">22:30:00<", ">22:30:05<", ">22:30:10<"}) {
    EXPECT_THAT(svg, HasSubstr(mark));
  }
  EXPECT_THAT(svg, HasSubstr("22:30:02.250: lease"));
  EXPECT_THAT(svg, Not(HasSubstr(">0 s<")));
}

TEST_F(TimelineTest, EveryColourIsInTheLegend) {
  MemoryHistory history = TenSeconds("session 7 of research: a program");
  history.events.emplace_back().set_kind("clear");
  history.events.back().set_seconds(kStart + 1);
  const std::string svg = MemoryTimeline({history}, false);
  const std::regex fill("fill=\"(#[0-9a-f]+)\"");
  const std::string legend = svg.substr(svg.rfind(">clear<"));
  for (std::sregex_iterator one(svg.begin(), svg.end(), fill), end; one != end; ++one) {
    if ((*one)[1] != "#ffffff") EXPECT_THAT(legend, HasSubstr((*one)[1].str()));
  }
  for (const char* words :
       {"session 7 of research", "idle: of no session", "not in use", "events of no session"}) {
    EXPECT_THAT(legend, HasSubstr(words));
  }
}

TEST_F(TimelineTest, IsAsWideAsItsWindow) {
  for (bool html : {false, true}) {
    const std::string picture = MemoryTimeline({TenSeconds("a program")}, html);
    EXPECT_THAT(picture, HasSubstr("width=\"100%\" viewBox=\"0 0 980"));
  }
}

TEST_F(TimelineTest, NamesAreCutAndEscaped) {
  const std::string svg = MemoryTimeline({TenSeconds("<b>&\"" + std::string(500, 'x'))}, false);
  EXPECT_THAT(svg, HasSubstr("&lt;b&gt;&amp;&quot;xxx"));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  EXPECT_THAT(svg, HasSubstr("x…</text>"));
}

TEST(ClockTest, StepsFitTheSpan) {
  for (double span : {0.05, 0.9, 3.0, 10.0, 59.0, 600.0, 3600.0, 90000.0}) {
    EXPECT_LE(span / ClockStep(span), 10) << span;
    EXPECT_GE(span / ClockStep(span), 3) << span;
  }
}

TEST(ClockTest, ASecondThatIsNearlyOver) {
  setenv("TZ", "UTC", 1);
  tzset();
  EXPECT_EQ(ClockText(kStart + 0.99996, 0.001), "22:30:01.000");
  EXPECT_EQ(ClockText(kStart + 0.25, 0.1), "22:30:00.3");
}

}  // namespace
}  // namespace longwire::cli
