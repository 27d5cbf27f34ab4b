// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <cerrno>
#include <system_error>

namespace crosstie {

Code blame(Code otherwise) {
  for (const int own : {EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL})
    if (errno == own) return Code::exhausted;
  return otherwise;
}

tl::unexpected<Error> fail_errno(Code code, std::string_view what) {
  const int number = errno;
  return fail(code, "{}: {}", what, std::system_category().message(number));
}

}  // namespace crosstie
