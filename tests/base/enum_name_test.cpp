// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/enum_name_internal.h"

#include <gtest/gtest.h>

namespace vitrail {
namespace {

enum class Fruit { apple, pear, plum };

const char* name_of(Fruit fruit) {
  switch (fruit) {
    case Fruit::apple:
      return "apple";
    case Fruit::pear:
      return "pear";
    case Fruit::plum:
      return "plum";
  }
  return nullptr;
}

TEST(EnumName, FindsEachEnumeratorFromTheFirstToTheLast) {
  EXPECT_EQ(enum_from_name<Fruit>("apple"), Fruit::apple);
  EXPECT_EQ(enum_from_name<Fruit>("pear"), Fruit::pear);
  EXPECT_EQ(enum_from_name<Fruit>("plum"), Fruit::plum);
  for (const char* name : {"", "appl", "apples", "Pear", "fig"}) EXPECT_FALSE(enum_from_name<Fruit>(name)) << name;
}

}  // namespace
}  // namespace vitrail
