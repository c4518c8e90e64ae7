// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/data_checks_internal.h"

#include "tests/train/training_fixture.h"
#include "vitrail/train/trainer.h"
#include "vitrail/train/utf8_internal.h"

namespace vitrail::train {
namespace {

TEST(DataChecks, AClassFolderThatIsNotUtf8IsAnErrorBeforeTheFirstStep) {
  for (const std::string name : {"b\xE4ume", "\xFF", "a\xC3"}) {
    const fs::path images = make_images(), run = testing::scratch_folder() / "run";
    fs::rename(images / "train/red", images / "train" / name);
    fs::rename(images / "test/red", images / "test" / name);
    const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json");
    const std::string message = error_of([&] { train(recipe, {.folder = run, .threads = 1}); });
    EXPECT_TRUE(contains(message, "class names in UTF-8")) << message;
    EXPECT_TRUE(contains(message, escape_non_utf8(name))) << message;
    EXPECT_FALSE(fs::exists(run / "metrics.csv"));
  }
}

TEST(Utf8, IsWhatRfc3629Says) {
  for (const std::string text : {"", "a", "ä", "€", "😀", "\xEF\xBB\xBF", "\xF4\x8F\xBF\xBF"})
    EXPECT_TRUE(is_utf8(text));
  for (const std::string text : {"\x80", "\xC3", "\xC0\x80", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                                 "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "a\xFF"})
    EXPECT_FALSE(is_utf8(text));
  EXPECT_EQ(escape_non_utf8("aä\xE4z"), "aä\\xE4z");
}

}  // namespace
}  // namespace vitrail::train
