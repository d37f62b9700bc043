// Keys and pages of longwire top, without a terminal.
#include "cli/top/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>

#include "cli/top/table.h"

namespace longwire::cli::top {
namespace {

using testing::HasSubstr;
using testing::Not;

Picture Example(size_t sessions = 3) {
  Picture picture;
  picture.server = "here";
  for (int32_t device = 0; device < 2; ++device) {
    picture.devices.push_back({device, "Software", 0.5, 1 << 20, 1 << 30, 1, device == 1, {}});
  }
  picture.tenants.emplace_back().name = "research";
  for (uint64_t id = 1; id <= sessions; ++id) {
    SessionRow row;
    row.id = 7000 + id;
    row.program = "program-" + std::to_string(id);
    row.identity = "alice";
    row.devices = {0};
    row.gpu = static_cast<double>(id) / 100;
    picture.sessions.push_back(row);
  }
  return picture;
}

class ViewTest : public testing::Test {
 protected:
  void SetUp() override {
    std::setlocale(LC_CTYPE, "C.UTF-8");
    view_.SetPicture(Example());
  }
  void Type(const std::string& text) {
    for (char letter : text) view_.Press(Key::kText, std::string(1, letter));
  }
  std::string Text(int width = 80, int height = 24) {
    std::string text;
    for (const Line& line : view_.Page(width, height)) text += line.text + "\n";
    return text;
  }
  std::string Marked() {
    for (const Line& line : view_.Page(120, 24)) {
      if (line.style == Style::kSelected) return line.text;
    }
    return "";
  }
  // What the operator wants done; one of no kind if that is nothing.
  transport::AdminRequest Request() {
    return view_.TakeRequest().value_or(transport::AdminRequest());
  }
  View view_;
};

TEST_F(ViewTest, APageIsAsLargeAsTheTerminal) {
  view_.SetPicture(Example(200));
  for (int width : {1, 7, 20, 80, 81, 300}) {
    for (int height : {1, 2, 3, 5, 10, 24, 60}) {
      std::vector<Line> page = view_.Page(width, height);
      ASSERT_EQ(page.size(), static_cast<size_t>(height));
      for (const Line& line : page) EXPECT_EQ(Width(line.text), width);
    }
  }
}

TEST_F(ViewTest, EightyColumnsHaveTheFiguresAndMoreHaveTheTenant) {
  const std::string narrow = Text(80), wide = Text(160);
  for (const char* title : {"PROGRAM", "IDENTITY", "GPU%", "MEM", "UP/s", "DOWN/s", "GATE", "BUSY",
                            "SHARE", "DUE", "WAIT", "cordoned", "n/a"}) {
    EXPECT_THAT(narrow, HasSubstr(title));
    EXPECT_THAT(wide, HasSubstr(title));
  }
  EXPECT_THAT(wide, HasSubstr("IDENTITY TENANT"));
  EXPECT_THAT(wide, HasSubstr("TRIP/s"));
}

TEST_F(ViewTest, SessionsAreSortedByTheColumnThatIsChosen) {
  EXPECT_THAT(Text(), HasSubstr("GPU%v"));
  EXPECT_THAT(Marked(), HasSubstr("program-3"));
  view_.Press(Key::kHome);
  view_.Press(Key::kRight);
  EXPECT_THAT(Text(), HasSubstr("MEMv"));
  view_.Press(Key::kLeft);
  Type("r");
  EXPECT_THAT(Text(), HasSubstr("GPU%^"));
  view_.Press(Key::kHome);
  EXPECT_THAT(Marked(), HasSubstr("program-1"));
}

TEST_F(ViewTest, TheSelectionStaysWithItsSession) {
  view_.Press(Key::kDown);
  EXPECT_THAT(Marked(), HasSubstr("program-2"));
  Picture next = Example();
  next.sessions[1].gpu = 0.9;  // the first one now
  view_.SetPicture(next);
  EXPECT_THAT(Marked(), HasSubstr("program-2"));
  next.sessions.erase(next.sessions.begin() + 1);
  view_.SetPicture(next);
  EXPECT_THAT(Marked(), HasSubstr("program-3")) << "what is in its place";
}

TEST_F(ViewTest, ManySessionsScroll) {
  view_.SetPicture(Example(200));
  view_.Press(Key::kEnd);
  Text();
  EXPECT_THAT(Marked(), HasSubstr("program-1 "));
  for (int i = 0; i < 500; ++i) view_.Press(Key::kUp);
  EXPECT_THAT(Marked(), HasSubstr("program-200"));
  Text();
  view_.Press(Key::kPageDown);
  EXPECT_THAT(Marked(), Not(HasSubstr("program-200")));
}

TEST_F(ViewTest, AFilterIsTypedAndTakenBack) {
  Type("/program-2");
  EXPECT_THAT(Text(), HasSubstr("filter: program-2_"));
  EXPECT_THAT(Text(), Not(HasSubstr("program-1"))) << "at once";
  view_.Press(Key::kEnter);
  EXPECT_THAT(Text(), HasSubstr("filter 'program-2'"));
  EXPECT_THAT(Marked(), HasSubstr("7002"));
  view_.Press(Key::kEscape);
  EXPECT_THAT(Text(), HasSubstr("program-1"));
  Type("/q");  // a letter of the filter, no key
  EXPECT_FALSE(view_.quit());
  view_.Press(Key::kText, "é");
  view_.Press(Key::kBackspace);
  EXPECT_THAT(Text(), HasSubstr("filter: q_"));
  EXPECT_THAT(Text(), HasSubstr("none fits the filter"));
}

TEST_F(ViewTest, KillingAsksFirst) {
  Type("k");
  EXPECT_THAT(Text(), HasSubstr("kill session 7003 (program-3 of alice)? y or n"));
  EXPECT_FALSE(view_.TakeRequest());
  Type("x");
  view_.Press(Key::kEnter);
  EXPECT_FALSE(view_.TakeRequest()) << "neither yes nor no";
  Type("n");
  EXPECT_FALSE(view_.TakeRequest());
  EXPECT_THAT(Text(), HasSubstr("nothing was done"));
  Type("ky");
  EXPECT_EQ(Request().kill().session(), 7003u);
  EXPECT_FALSE(view_.TakeRequest()) << "once";
}

TEST_F(ViewTest, TheQuestionIsAboutTheSessionOfThen) {
  Type("k");
  Picture next = Example();
  next.sessions[0].gpu = 0.9;
  next.sessions.pop_back();
  view_.SetPicture(next);
  Type("y");
  EXPECT_EQ(Request().kill().session(), 7003u);
}

TEST_F(ViewTest, WithoutASessionNoneIsKilled) {
  view_.SetPicture(Example(0));
  Type("ky");
  EXPECT_FALSE(view_.TakeRequest());
  EXPECT_THAT(Text(), HasSubstr("no sessions"));
}

TEST_F(ViewTest, DrainingIsTurnedOnAndOff) {
  Type("dy");
  auto request = Request();
  ASSERT_TRUE(request.has_drain());
  EXPECT_FALSE(request.drain().off());
  Picture next = Example();
  next.draining = true;
  view_.SetPicture(next);
  EXPECT_THAT(Text(), HasSubstr("draining: no new sessions are opened"));
  Type("dy");
  EXPECT_TRUE(Request().drain().off());
}

TEST_F(ViewTest, ADeviceIsCordonedByItsNumber) {
  Type("c");
  EXPECT_THAT(Text(), HasSubstr("cordon which device, or take that back? 0_"));
  view_.Press(Key::kEnter);
  auto request = Request();
  ASSERT_TRUE(request.has_cordon());
  EXPECT_EQ(request.cordon().device(), 0);
  EXPECT_FALSE(request.cordon().off());
  Type("c");
  view_.Press(Key::kBackspace);
  Type("1");
  view_.Press(Key::kEnter);
  request = Request();
  EXPECT_EQ(request.cordon().device(), 1);
  EXPECT_TRUE(request.cordon().off()) << "it is cordoned";
  Type("c7");
  view_.Press(Key::kEnter);
  EXPECT_FALSE(view_.TakeRequest());
  EXPECT_THAT(Text(), HasSubstr("there is no device '07'"));
}

TEST_F(ViewTest, AServerThatIsGoneIsSaidToBe) {
  view_.SetProblem("no longwired at /run/longwire/control");
  EXPECT_THAT(Text(120), HasSubstr("no answer, these figures are old; trying again: no longwired"));
  EXPECT_THAT(Text(), HasSubstr("program-3"));
  view_.SetPicture(Example());
  EXPECT_THAT(Text(), Not(HasSubstr("no answer")));
}

TEST_F(ViewTest, NamesOfOthersCannotWriteOnTheTerminal) {
  Picture picture = Example(1);
  picture.sessions[0].program = "\x1b]0;evil\a日本";
  picture.sessions[0].identity = "a\nb";
  view_.SetPicture(picture);
  Type("k");
  for (const Line& line : view_.Page(120, 24)) {
    for (char byte : line.text) EXPECT_GE(static_cast<unsigned char>(byte), ' ');
  }
}

TEST_F(ViewTest, HelpAndTheEnd) {
  Type("?");
  EXPECT_THAT(Text(), HasSubstr("kill the selected session (asks first)"));
  Type("q");
  EXPECT_FALSE(view_.quit()) << "back from the help";
  Type("q");
  EXPECT_TRUE(view_.quit());
}

TEST_F(ViewTest, ControlCEndsItEverywhere) {
  Type("k");
  view_.Press(Key::kInterrupt);
  EXPECT_TRUE(view_.quit());
}

}  // namespace
}  // namespace longwire::cli::top
