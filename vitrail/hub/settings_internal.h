// SPDX-License-Identifier: Apache-2.0
#pragma once
// The environment variables of huggingface_hub, which hold for this program too.
#include <filesystem>
#include <string>

namespace vitrail::hub {

struct Settings {
  // HF_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub.
  std::filesystem::path cache;
  std::string endpoint;        // HF_ENDPOINT without user and last slash, else https://huggingface.co
  std::string authorization;   // "Basic …" of a user and password in HF_ENDPOINT, which no message shows
  std::string token;           // HF_TOKEN, else the file HF_TOKEN_PATH, else HF_HOME/token; may be empty
  bool offline = false;        // HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE: no request is sent
  bool symlinks = true;        // HF_HUB_DISABLE_SYMLINKS: files are moved to the snapshot instead
  int connect_timeout_s = 10;  // HF_HUB_ETAG_TIMEOUT
  int stall_timeout_s = 10;    // HF_HUB_DOWNLOAD_TIMEOUT
};

// Throws Error for a variable with an invalid value.
Settings settings_from_environment();

}  // namespace vitrail::hub
