// SPDX-License-Identifier: Apache-2.0
// The endpoint primitive between peers of one host, processes or threads: puts are copies into
// memory that both have mapped. That they share a host is proved by attaching it.
#pragma once
#include "base/log.h"
#include "transport/endpoint.h"
#include "transport/options.h"

namespace crosstie {

// Memory that peers put into must lie in a Buffer.
Result<std::unique_ptr<Worker>> make_shm_worker(const TransportOptions& options, const Log& log);

}  // namespace crosstie
