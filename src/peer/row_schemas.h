/* The schemas of rows, compiled when the row is added. Private to peer/.
 *
 * The params of a row that brings a schema are always checked. Results are checked where the service is asked to, which is
 * for finding rows that do not say the truth about themselves. */
#ifndef WEFT_ROW_SCHEMAS_H
#define WEFT_ROW_SCHEMAS_H

#include "request.h"

/* -EINVAL: a schema of the row, or of one of its forms, cannot be compiled; -ENOMEM. */
int weft__row_schemas_add(weft_service *service, const weft_method *row);
void weft__row_schemas_remove(weft_service *service, const weft_method *row);
void weft__row_schemas_done(weft_service *service);

/* For a row with a schema: 0 the params fit; <0: the request has been answered, or memory was short. */
int weft__row_schemas_params(weft_req *req, const weft_method *row, const weft_json *params);
/* For a service that checks results: true if this one does not fit, and the request was answered with that. */
bool weft__row_schemas_misfit(weft_req *req, const weft_val *result);

#endif
