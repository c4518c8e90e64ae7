// SPDX-License-Identifier: Apache-2.0
// The manual page vitrail(1), in the macros of man(7).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "apps/vitrail/shell/command_tree.h"
#include "vitrail/base/utf8_internal.h"

namespace vitrail::app {
namespace {

// The name of a character beyond ASCII for troff, "\\[u00D7]", from UTF-8.
std::string troff_character(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes.front());
  uint32_t code = first & (0xffU >> (bytes.size() + 1));
  for (const char c : bytes.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3fU);
  return fmt::format("\\[u{:04X}]", code);
}

// Text that troff does not interpret.
std::string plain(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (const size_t length = utf8_length(std::string_view(text).substr(i)); length > 1) {
      result += troff_character(std::string_view(text).substr(i, length));
      i += length - 1;
      continue;
    }
    const bool at_start = result.empty() || result.back() == '\n';
    if (at_start && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  return result;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string value_of(const OptionEntry& option) {
  if (!option.takes_value) return "";
  return option.choices.empty() ? " VALUE" : fmt::format(" {}", fmt::join(option.choices, "|"));
}

std::string options_text(const std::vector<OptionEntry>& options) {
  std::string text;
  for (const OptionEntry& option : options) {
    const std::string names =
        option.is_positional() ? upper(option.name) : fmt::format("{}", fmt::join(option.names(), ", "));
    text += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", plain(names), plain(option.is_positional() ? "" : value_of(option)),
                        plain(option.description));
    if (!option.environment.empty()) text += fmt::format("(environment: {})\n", option.environment);
  }
  return text;
}

std::string synopsis(const CommandEntry& command) {
  std::string text = "vitrail " + command.name;
  for (const OptionEntry& option : command.options) {
    if (!option.is_positional()) continue;
    const std::string name = upper(option.name) + (option.repeatable ? "..." : "");
    text += option.required ? " " + name : " [" + name + "]";
  }
  return text + " [OPTIONS]";
}

std::string command_text(const CommandEntry& command) {
  std::string text = fmt::format(".SS {}\n{}.\n.PP\n\\fB{}\\fR\n", plain(command.name), plain(command.description),
                                 plain(synopsis(command)));
  text += options_text(command.options);
  if (!command.footer.empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", plain(command.footer));
  return text;
}

}  // namespace

std::string manual_page(const CommandTree& tree) {
  std::string text = ".TH VITRAIL 1 \"\" \"vitrail " VITRAIL_VERSION "\" \"User Commands\"\n";
  text += ".SH NAME\nvitrail \\- run and train Vision Transformers\n";
  text += ".SH SYNOPSIS\n\\fBvitrail\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] \\fIARGUMENTS\\fR\n";
  text += ".SH DESCRIPTION\n" + plain(tree.program.description) + "\n";
  text += ".SH OPTIONS OF ALL COMMANDS\n" + options_text(tree.program.options);
  text += ".SH COMMANDS\n";
  for (const CommandEntry& command : tree.commands) {
    text += command_text(command);
    for (const CommandEntry& subcommand : command.subcommands) text += command_text(subcommand);
  }
  text +=
      ".SH EXIT STATUS\n0 for success, 1 if something failed, 2 for wrong usage.\n"
      ".SH ENVIRONMENT\n.TP\nHF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE\n"
      "Cache, server, access and use of the Hugging Face hub, as in huggingface_hub.\n"
      ".TP\nVITRAIL_CPU\nThe instruction set to use.\n.TP\nNO_COLOR\nNo colours in messages.\n";
  return text;
}

}  // namespace vitrail::app
