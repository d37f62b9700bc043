// As all that is shipped is compiled.
#include <gtest/gtest.h>

#include "wire/guards.h"

namespace longwire::wire {
namespace {

static_assert(!GuardIsOff("certificate"), "the compiler knows: there is nothing to switch");

TEST(GuardsOff, NothingIsNamed) { EXPECT_TRUE(kGuards.empty()); }

}  // namespace
}  // namespace longwire::wire
