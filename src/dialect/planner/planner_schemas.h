/* What the insides of params must look like, for the rows of planner.c: a table says what is an object, these say of what.
 * Both forms fit: the seed's, and the stricter one in which a task has an id, a priority and constraints. Members that are
 * not known are fine, and so is null for what may be absent. What a handler says better itself is not here: names of roles,
 * actions and types of tasks, and whether a plan can be carried out. */
#ifndef WEFT_PLANNER_SCHEMAS_H
#define WEFT_PLANNER_SCHEMAS_H

extern const char weft__planner_execute_schema[], weft__planner_create_schema[], weft__planner_run_schema[],
    weft__planner_validate_schema[], weft__planner_register_schema[];

#endif
