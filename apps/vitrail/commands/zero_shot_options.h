// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options of zero-shot classification: the labels, and the texts that they become.
#include <string>
#include <vector>

#include "apps/vitrail/shell/common.h"
#include "vitrail/pipeline/dual_model.h"

namespace vitrail::app {

struct ZeroShotOptions {
  std::vector<std::string> templates_given{};  // --template, which may be repeated
  std::string templates_file{}, tokenizer{};

  std::vector<CLI::Option*> add_to(CLI::App& command);  // --template, --templates, and --tokenizer
  CLI::Option* add_tokenizer_to(CLI::App& command);     // --tokenizer
  // The templates of the options.
  std::vector<std::string> templates() const;
};

// The lines of a UTF-8 file, also blank ones, without a byte-order mark.
std::vector<std::string> read_lines(const std::string& file);
bool is_blank(const std::string& line);

// The names of classes that --labels gives: a file or pipe with one per line or in JSON, or names that are separated by
// commas.  Throws Error as is_text_file, and for a file without any.
std::vector<std::string> labels_of(const std::string& labels);

// Whether the text of an option is the path of a file or pipe.  Throws Error for what looks like a text file (a name
// without spaces that ends in .txt, .json or .csv) and does not exist.
bool is_text_file(const std::string& text);

DualModel load_dual_model(const models::ModelFiles& files, const ModelOptions& options, const GlobalOptions& global,
                          const std::string& tokenizer);

}  // namespace vitrail::app
