// SPDX-License-Identifier: Apache-2.0
// The parts of the completions and of the manual page, in full for a small command.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"

namespace vitrail::testing {
namespace {

std::string form(const std::string& kind) { return run({"completion", kind}).out; }

// The names of the commands, in the order of the help.
std::vector<std::string> command_names() {
  return {"classify", "zeroshot",   "embed", "attention", "pca",   "explain", "segment",
          "anomaly",  "depth",      "matte", "detect",    "pose",  "eval",    "inspect",
          "bench",    "convert",    "train", "pretrain",  "serve", "knn",     "index",
          "search",   "duplicates", "audit", "models",    "pull",  "cache",   "info"};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

TEST(ManualPage, HasItsSectionsInTheirOrder) {
  const std::string page = form("man"), version = lines_of(run({"--version"}).out).at(0);
  EXPECT_TRUE(page.starts_with(".TH VITRAIL 1 \"\" \"" + version +
                               "\" \"User Commands\"\n.SH NAME\nvitrail \\- run and train Vision Transformers\n"
                               ".SH SYNOPSIS\n\\fBvitrail\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] \\fIARGUMENTS\\fR\n"
                               ".SH DESCRIPTION\nVision Transformers: inference, features, attention maps, evaluation, "
                               "conversion and training.\n.SH OPTIONS OF ALL COMMANDS\n.TP\n\\fB\\-h, "
                               "\\-\\-help\\fR\nPrint this help message and exit\n"))
      << page.substr(0, 600);
  EXPECT_TRUE(contains(page,
                       ".TP\n\\fB\\-\\-quiet\\fR\nSuppress progress and warnings\n(environment: "
                       "VITRAIL_QUIET)\n.SH COMMANDS\n.SS classify\nClassify images.\n.PP\n"));
  EXPECT_TRUE(page.ends_with(
      ".SH EXIT STATUS\n0 for success, 1 if something failed, 2 for wrong usage.\n.SH ENVIRONMENT\n.TP\nHF_HOME, "
      "HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE\nCache, server, access and use of the Hugging Face hub, as "
      "in huggingface_hub.\n.TP\nVITRAIL_CPU\nThe instruction set to use.\n.TP\nNO_COLOR\nNo colours in messages.\n"));
  std::vector<std::string> sections;
  for (const std::string& line : lines_of(page)) {
    if (line.starts_with(".SS ")) sections.push_back(line.substr(4));
  }
  std::erase(sections, "anomaly fit");
  EXPECT_EQ(sections, command_names()) << "the hidden command is left out";
}

TEST(ManualPage, TellsTheArgumentsTheOptionsAndTheExamplesOfACommand) {
  const std::string page = form("man");
  EXPECT_TRUE(contains(
      page,
      ".SS cache\nList, verify and delete downloaded models.\n.PP\n\\fBvitrail cache ACTION [MODEL...] "
      "[OPTIONS]\\fR\n.TP\n\\fB\\-h, \\-\\-help\\fR\nPrint this help message and exit\n.TP\n\\fBACTION\\fR\nls: list; "
      "verify: compare contents with their digests; rm: delete models or revisions; prune: delete what no branch or "
      "tag names, and interrupted downloads\n.TP\n\\fBMODEL\\fR\nModels: organisation/name[@revision] (default: "
      "all)\n.TP\n\\fB\\-\\-remove\\fR\nverify: delete damaged files\n.TP\n\\fB\\-\\-dry\\-run\\fR\nrm, prune: only "
      "say "
      "what would become free\n.PP\n.nf\nExample: vitrail cache ls\n         vitrail cache verify timm/vit_tiny\n      "
      " "
      "  vitrail cache rm timm/vit_tiny@main\n.fi\n"));
  EXPECT_TRUE(contains(page, "\n\\fB\\-\\-format\\fR text|json|csv\n"));
  EXPECT_TRUE(contains(page, "\n\\fB\\-o, \\-\\-output\\fR VALUE\n"));
  EXPECT_TRUE(contains(page, "\n\\fBvitrail eval DATASET [OPTIONS]\\fR\n"));
  EXPECT_TRUE(contains(page, "\n\\fBvitrail pull MODEL... [OPTIONS]\\fR\n"));
}

// Troff would take them for requests, escapes and hyphens; characters beyond ASCII have their code points.
TEST(ManualPage, CharactersOfTroffAreEscaped) {
  const std::string page = form("man");
  EXPECT_TRUE(contains(page, "layer i has 2^i \\[u00D7] 2^i of them"));
  EXPECT_TRUE(contains(page, "NAME/0.png, \\[u2026]; csv"));
  EXPECT_TRUE(contains(page, "half (16\\-bit: bf16 with AMX, int16 with AVX\\-512 VNNI"));
  for (const char c : page) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
  const std::set<std::string> requests{".TH", ".SH", ".SS", ".TP", ".PP", ".nf", ".fi"};
  for (const std::string& line : lines_of(page)) {
    EXPECT_FALSE(line.starts_with("'")) << line;
    if (line.starts_with(".")) {
      EXPECT_TRUE(requests.contains(line.substr(0, 3))) << line;
    }
  }
}

TEST(BashCompletion, HasTheCommandsTheirOptionsAndChoices) {
  const std::string script = form("bash");
  const std::string names = joined(command_names());
  EXPECT_TRUE(
      script.starts_with("# bash completion for vitrail, written by `vitrail completion bash`.\n_vitrail() {\n"));
  EXPECT_TRUE(script.ends_with("\n}\ncomplete -o default -F _vitrail vitrail\n"));
  const std::vector<std::string> lines = lines_of(script);
  for (const std::string& line :
       {"    case \" " + names + " \" in *\" $word \"*) command=$word; break ;; esac", "    words='" + names + "'",
        std::string(
            "    words='-h --help --version --license --threads --precision --decode-memory --max-memory --quiet'"),
        std::string("    cache) words+=' -h --help --remove --dry-run' ;;"),
        std::string("    info) words+=' -h --help' ;;"),
        std::string("    embed:--tokens) words='pooled cls patch all' ;;"),
        std::string("    segment:--write) words='overlay masks csv coco sa1b polygons' ;;"),
        std::string("    cache:@) words='ls verify rm prune' ;;")})
    EXPECT_EQ(std::ranges::count(lines, line), 1) << line;
  EXPECT_FALSE(contains(script, "kind")) << "the hidden command";
}

TEST(ZshCompletion, HasASpecificationOfEachArgument) {
  const std::string script = form("zsh");
  EXPECT_TRUE(
      script.starts_with("#compdef vitrail\n# zsh completion for vitrail, written by `vitrail completion zsh`.\n"));
  EXPECT_TRUE(script.ends_with("\n_vitrail \"$@\"\n"));
  EXPECT_TRUE(contains(script,
                       "\n        'cache:List, verify and delete downloaded models'\n        'info:Show the "
                       "version, the build and what this machine runs'\n      )\n"));
  EXPECT_TRUE(
      contains(script,
               " \\\n            '(-h --help)-h[Print this help message and exit]' \\\n            '(-h "
               "--help)--help[Print this help message and exit]' \\\n            ':action:(ls verify rm prune)' "
               "\\\n            '*:model:_files' \\\n            '(--remove)--remove[verify\\: delete damaged "
               "files]' \\\n            '(--dry-run)--dry-run[rm, prune\\: only say what would become free]' ;;\n"));
  EXPECT_TRUE(contains(script,
                       "\n            '(-m --model)-m[Model\\: folder with config.json and weights, a weights file "
                       "(.safetensors, .pth, .npz), or organisation/name\\[@revision\\] on the Hugging Face "
                       "hub]:value:_files' \\\n            '(-m --model)--model[Model\\: "));
  EXPECT_TRUE(contains(script,
                       "\n            '*--set[Override a field of the recipe\\: key.path=value; "
                       "repeatable]:value:_files' \\\n"));
  EXPECT_TRUE(contains(script, "relative to the image'\\''s shorter side]"));
  EXPECT_TRUE(contains(script, "\n            '::MODEL:_files' ")) << "an argument that may be left out";
}

TEST(FishCompletion, HasALineForEachOption) {
  const std::vector<std::string> lines = lines_of(form("fish"));
  EXPECT_EQ(lines.at(0), "# fish completion for vitrail, written by `vitrail completion fish`.");
  EXPECT_EQ(lines.at(1), "complete -c vitrail -s h -l help -d 'Print this help message and exit'");
  const std::string cache = "complete -c vitrail -n '__fish_seen_subcommand_from cache'";
  const std::string title = "complete -c vitrail -n __fish_use_subcommand -f -a ";
  const std::vector<std::string> want{
      title + "cache -d 'List, verify and delete downloaded models'",
      cache + " -s h -l help -d 'Print this help message and exit'",
      cache +
          " -a 'ls verify rm prune' -d 'ls: list; verify: compare contents with their digests; rm: delete models or "
          "revisions; prune: delete what no branch or tag names, and interrupted downloads'",
      cache + " -l remove -d 'verify: delete damaged files'",
      cache + " -l dry-run -d 'rm, prune: only say what would become free'",
      title + "info -d 'Show the version, the build and what this machine runs'"};
  const auto begin = std::ranges::find(lines, want[0]);
  ASSERT_NE(begin, lines.end());
  EXPECT_EQ(std::vector<std::string>(begin, begin + 6), want);
  EXPECT_EQ(std::ranges::count(lines,
                               "complete -c vitrail -l threads -r -F -d 'Number of threads (default: all "
                               "available cores)'"),
            1);
  EXPECT_EQ(std::ranges::count(lines,
                               "complete -c vitrail -n '__fish_seen_subcommand_from index' -s o -l output -r -F -d "
                               "'The index, a file of FAISS (IndexFlatIP); the images\\' paths are in INDEX.txt, "
                               "the model in INDEX.json'"),
            1);
  std::vector<std::string> names;
  for (const std::string& line : lines) {
    if (line.starts_with(title))
      names.push_back(line.substr(title.size(), line.find(' ', title.size()) - title.size()));
  }
  EXPECT_EQ(names, command_names());
}

}  // namespace
}  // namespace vitrail::testing
