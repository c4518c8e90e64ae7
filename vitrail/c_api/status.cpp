// SPDX-License-Identifier: Apache-2.0
#include <new>

#include "vitrail/base/call_limit.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/c_api/handles_internal.h"

namespace vitrail::c_api {
namespace {

// Given when no memory is left for a status of its own; vitrail_status_free() knows it.
vitrail_status& out_of_memory() {
  static vitrail_status status{VITRAIL_OUT_OF_MEMORY, "out of memory", {}};
  return status;
}

vitrail_status* new_status(vitrail_code code, const char* message, const Error::Parts* parts = nullptr) noexcept try {
  return new vitrail_status{code, message, parts ? *parts : Error::Parts{}};
} catch (...) {
  return &out_of_memory();
}

}  // namespace

vitrail_status* status_of_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return new_status(VITRAIL_INVALID, error.what(), error.parts());
  } catch (const Cancelled& cancelled) {
    return new_status(VITRAIL_CANCELLED, cancelled.what());
  } catch (const std::bad_alloc&) {
    return &out_of_memory();
  } catch (const std::exception& error) {
    return new_status(VITRAIL_INTERNAL, error.what());
  } catch (...) {
    return new_status(VITRAIL_INTERNAL, "an unknown exception");
  }
}

}  // namespace vitrail::c_api

extern "C" {

int vitrail_api_version(void) { return VITRAIL_C_API_VERSION; }
const char* vitrail_version(void) { return VITRAIL_VERSION; }

vitrail_code vitrail_status_code(const vitrail_status* status) { return status->code; }
const char* vitrail_status_message(const vitrail_status* status) { return status->message.c_str(); }
const char* vitrail_status_where(const vitrail_status* status) { return status->parts.where.c_str(); }
const char* vitrail_status_expected(const vitrail_status* status) { return status->parts.expected.c_str(); }
const char* vitrail_status_got(const vitrail_status* status) { return status->parts.got.c_str(); }
void vitrail_status_free(vitrail_status* status) {
  if (status != &vitrail::c_api::out_of_memory()) delete status;
}

void vitrail_set_warning_callback(void (*callback)(const char* message, void* context), void* context) {
  if (!callback) {
    vitrail::set_warning_callback({});
    return;
  }
  vitrail::set_warning_callback([=](const std::string& message) { callback(message.c_str(), context); });
}

}  // extern "C"
