// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/fields.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/messages.h"

namespace vitrail {
namespace {

using testing::error_of;

enum class Size { small, large };

struct Options {
  bool on = false, norm = true;
  int64_t count = 5;
  uint8_t byte = 1;
  std::optional<int64_t> limit = {};
  double share = 0.5;
  std::string name = "x";
  Size size = Size::large;
  std::vector<int64_t> layers{-1};
  std::vector<double> mean{};
  std::vector<std::string> words{}, files{"csv"};
  std::array<int64_t, 2> side{8, 8};
  std::optional<double> nested = {};
};

void describe_options(Fields& fields, Options& o) {
  fields.boolean("on", o.on);
  fields.boolean({"final_norm", "Skip the norm", "no-norm"}, o.norm);
  fields.integer({"num_items", "Items"}, o.count, 1, 100);
  fields.integer("byte", o.byte, 0);
  fields.integer("limit", o.limit, 1);
  fields.number(Field("share").without_effect(), o.share, {0, 1});
  fields.text("name", o.name);
  fields.choice<Size>("size", o.size, {{"small", Size::small}, {"large", Size::large}});
  fields.integers("layers", o.layers);
  fields.numbers("mean", o.mean, {0});
  fields.texts("words", o.words);
  fields.choices("files", o.files, {"csv", "png"});
  fields.size("side", o.side);
  fields.object("inner", [&](Fields& inner) { inner.number("nested", o.nested, kAboveZero); });
}

Options with(const std::string& option, const std::vector<std::string>& texts) {
  Options options;
  EXPECT_TRUE(set_field(describe_options, options, option, texts)) << option;
  return options;
}

TEST(TextFieldReader, OptionsHaveHyphensOrANameOfTheirOwn) {
  EXPECT_EQ(with("num-items", {"1"}).count, 1);
  EXPECT_FALSE(with("no-norm", {""}).norm);
  EXPECT_TRUE(with("no-norm", {"false"}).norm);
  Options options;
  for (const char* none : {"num_items", "final-norm", "final_norm", "nested", ""})
    EXPECT_FALSE(set_field(describe_options, options, none, {"1"})) << none;
}

TEST(TextFieldReader, AFlagIsTrueWithoutAValue) {
  for (const char* text : {"", "true", "1"}) EXPECT_TRUE(with("on", {text}).on) << text;
  for (const char* text : {"false", "0"}) EXPECT_FALSE(with("on", {text}).on) << text;
  for (const char* text : {"2", "yes", "True", "00"})
    EXPECT_EQ(error_of([&] { with("on", {text}); }), str("on: expected true or false, got '", text, "'"));
}

TEST(TextFieldReader, NumbersAreWithinTheirRangesWithoutOtherCharacters) {
  EXPECT_EQ(with("num-items", {"100"}).count, 100);
  for (const char* text : {"0", "101", "-1", "", " 1", "1 ", "1.0", "1e1", "0x1", "99999999999999999999"}) {
    EXPECT_EQ(error_of([&] { with("num-items", {text}); }),
              str("num-items: expected an integer from 1 to 100, got '", text, "'"));
  }
  EXPECT_EQ(error_of([] { with("byte", {"256"}); }), "byte: expected an integer from 0 to 255, got '256'");
  EXPECT_EQ(with("limit", {"3"}).limit, 3);
  EXPECT_EQ(error_of([] { with("limit", {"0"}); }), "limit: expected an integer of at least 1, got '0'");
  EXPECT_EQ(with("share", {"1e-3"}).share, 1e-3);
  for (const char* text : {"", "-0.1", "1.01", "nan", "inf", "-inf", "0.5x", " 1"})
    EXPECT_EQ(error_of([&] { with("share", {text}); }), str("share: expected a number from 0 to 1, got '", text, "'"));
}

TEST(TextFieldReader, ListsHaveCommas) {
  using List = std::vector<int64_t>;
  EXPECT_EQ(with("layers", {"3"}).layers, List{3});
  EXPECT_EQ(with("layers", {"-1,-4,0"}).layers, (List{-1, -4, 0}));
  for (const char* text : {"", ",", "1,", ",1", "1,,2", "1, 2", "x"})
    EXPECT_THROW(with("layers", {text}), Error) << text;
  EXPECT_EQ(with("mean", {"0.5,1"}).mean, (std::vector<double>{0.5, 1}));
  EXPECT_EQ(with("words", {"a,b", "c"}).words, (std::vector<std::string>{"a,b", "c"}));
  EXPECT_EQ(with("side", {"3"}).side, (std::array<int64_t, 2>{3, 3}));
  EXPECT_EQ(with("side", {"3,4"}).side, (std::array<int64_t, 2>{3, 4}));
  EXPECT_EQ(error_of([] { with("side", {"3,4,5"}); }), "side: expected N or HEIGHT,WIDTH in pixels, got '3,4,5'");
}

TEST(TextFieldReader, TextsAreRepeatedButChoicesHaveCommas) {
  EXPECT_EQ(with("files", {"csv,png"}).files, (std::vector<std::string>{"csv", "png"}));
  EXPECT_EQ(error_of([] { with("files", {"csv,jpg"}); }), "files: expected csv or png, got 'jpg'; did you mean png?");
}

TEST(CheckFields, NamesTheFirstNumberOutsideItsRange) {
  EXPECT_NO_THROW(check_fields(describe_options, Options()));
  EXPECT_EQ(error_of([] { check_fields(describe_options, Options{.count = 0, .share = 2}); }),
            "num_items: expected an integer from 1 to 100, got 0");
  EXPECT_EQ(error_of([] { check_fields(describe_options, Options{.share = std::nan("")}); }),
            "share: expected a number from 0 to 1, got nan");
  EXPECT_EQ(error_of([] { check_fields(describe_options, Options{.nested = 0}); }),
            "nested: expected a number above 0, got 0");
}

TEST(TextFieldReader, AChoiceNamesItsValuesAndASimilarOne) {
  EXPECT_EQ(with("size", {"small"}).size, Size::small);
  EXPECT_EQ(error_of([] { with("size", {"smal"}); }), "size: expected small or large, got 'smal'; did you mean small?");
}

TEST(TextFieldReader, OnlyListsAreRepeated) {
  EXPECT_EQ(with("name", {"y"}).name, "y");
  EXPECT_EQ(error_of([] { with("name", {"y", "z"}); }), "name: expected one value, got 2");
}

TEST(FieldRows, HaveWhatTheDescriptionSays) {
  const std::vector<FieldRow> rows = rows_of(describe_options);
  ASSERT_EQ(rows.size(), 14u);
  EXPECT_EQ(rows[1].name, "final_norm");
  EXPECT_EQ(rows[1].option, "no-norm");
  EXPECT_EQ(rows[1].help, "Skip the norm");
  EXPECT_EQ(rows[1].preset, "true");
  EXPECT_EQ(rows[2].expected, "an integer from 1 to 100");
  EXPECT_EQ(rows[4].preset, "") << "unset";
  EXPECT_FALSE(rows[5].changes_results);
  EXPECT_TRUE(rows[6].changes_results);
  EXPECT_EQ(rows[7].expected, "small or large");
  EXPECT_EQ(rows[7].preset, "large");
  EXPECT_EQ(rows[11].expected, "csv or png");
  EXPECT_EQ(rows[13].name, "inner.nested");
  Options options;
  options.count = 0;
  const auto describe = [&](Fields& fields) { describe_options(fields, options); };
  EXPECT_EQ(rows_of(describe)[2].preset, "") << "outside its range";
  EXPECT_FALSE(options.limit.has_value()) << "a description changes nothing";
}

}  // namespace
}  // namespace vitrail
