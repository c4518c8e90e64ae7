// SPDX-License-Identifier: Apache-2.0
#include "tests/support/errors.h"

#include <cstdlib>
#include <fstream>
#include <utility>

#include "tests/support/paths.h"

namespace vitrail::testing {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;

ErrorWordings::ErrorWordings(std::filesystem::path file, bool update) : file_(std::move(file)), update_(update) {
  std::ifstream stream;
  if (!update) stream.open(file_);
  for (std::string line; std::getline(stream, line);) wordings_.insert(line);
}

AssertionResult ErrorWordings::check(const std::string& message, const std::string& where, const std::string& value) {
  const std::string begin = where + ": expected ", end = ", got " + value;
  if (!message.starts_with(begin) || !message.ends_with(end) || message.size() < begin.size() + end.size())
    return AssertionFailure() << "expected \"" << begin << "…" << end << "\", got \"" << message << '"';
  const std::string wording = message.substr(begin.size(), message.size() - begin.size() - end.size());
  if (update_ && wordings_.insert(wording).second) {
    std::ofstream stream(file_);
    for (const std::string& line : wordings_) stream << line << '\n';
  }
  if (wordings_.contains(wording)) return ::testing::AssertionSuccess();
  return AssertionFailure() << file_.string() << " lacks \"" << wording << "\"; VITRAIL_UPDATE_GOLDEN=1 renews it";
}

AssertionResult is_error(const std::string& message, const std::string& where, const std::string& value) {
  const std::filesystem::path test = ::testing::UnitTest::GetInstance()->current_test_info()->file();
  static ErrorWordings wordings(source(test.parent_path()) / "errors.golden",
                                std::getenv("VITRAIL_UPDATE_GOLDEN") != nullptr);
  return wordings.check(message, where, value);
}

AssertionResult is_error(const std::string& message, const std::string& text) {
  static const std::string wording = ": …, got ";
  const size_t at = text.find(wording);
  if (at == text.npos) return AssertionFailure() << '"' << text << "\" has no \"" << wording << '"';
  return is_error(message, text.substr(0, at), text.substr(at + wording.size()));
}

}  // namespace vitrail::testing
