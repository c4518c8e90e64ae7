// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options of zero-shot classification: the labels, and the texts that they become.
#include <string>
#include <vector>

#include "apps/vitrail/common.h"
#include "vitrail/pipeline/dual_model.h"

namespace vitrail::app {

struct ZeroShotOptions {
  std::string default_template = "{}";         // the labels are the texts
  std::vector<std::string> templates_given{};  // --template, which may be repeated
  std::string templates_file{}, tokenizer{};

  void add_to(CLI::App& command);            // --template, --templates, and --tokenizer
  void add_tokenizer_to(CLI::App& command);  // --tokenizer
  // The templates of the options; the default one without any.
  std::vector<std::string> templates() const;
};

// The lines of a UTF-8 file, without a byte-order mark and empty lines.  Throws Error for a file without any.
std::vector<std::string> read_lines(const std::string& file);

DualModel load_dual_model(const ModelOptions& options, const GlobalOptions& global, const std::string& tokenizer);

}  // namespace vitrail::app
