// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models of the Hugging Face hub by name: "timm/deit_tiny_patch16_224.fb_in1k".  The cache is that of huggingface_hub,
// and its environment variables hold: HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE and the proxies'.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace vitrail::hub {

struct ModelName {
  std::string repository;         // "organisation/name"
  std::string revision = "main";  // a branch, a tag or a commit
};

std::string to_string(const ModelName& name);  // "organisation/name@revision", without "@main"

// "organisation/name[@revision]", with or without "hf-hub:" (timm's), "hf_hub:" or "hf://" in front.  Nothing for other
// text, and for a path whose first folder exists.
std::optional<ModelName> parse_name(const std::string& text);

// The folder of a model in the cache, with config.json beside its weights; nothing if it is not there or incomplete.
// Sends no request.  Throws Error for a file that has another size than the hub listed, and for a link that leads out
// of the cache.
std::optional<std::filesystem::path> find_cached(const ModelName& name);

// Brings the files that inference needs into the cache, all of one commit: configurations, weights and tokenizer.
// Returns their folder.  Sizes and the free space are checked first, and the digest of each file before it gets its
// name.  An interrupted download continues where it stopped.  Throws Error that says what to do.
std::filesystem::path pull(const ModelName& name);

// The folder in the cache, or else pull().
std::filesystem::path fetch(const ModelName& name);

// Called during a pull, a few times per megabyte; bytes of all its files.  Installs the process-wide callback and
// returns the previous one.
struct Transfer {
  std::string file;
  int64_t done = 0, total = 0;
};
using TransferCallback = std::function<void(const Transfer&)>;
TransferCallback set_transfer_callback(TransferCallback callback);

}  // namespace vitrail::hub
