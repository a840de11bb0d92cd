/* What the keys do, in words. */
import { h } from './dom.js';
import { dialog } from './ui.js';

const LIST = [
    ['j, k', 'next, previous'], ['Enter', 'open'], ['g then i t g s f p r h d', 'go to Inbox, Tasks, Gated tasks, Sessions, Files, Preview, Traffic, Health, Devices'],
    ['/', 'find'], ['a, a', 'allow (the second press confirms)'], ['d, d', 'deny (the second press confirms)'], ['c', 'write: a new task, or more in a session'],
    ['x', 'Tasks: choose a task for cancelling'], ['n, N', 'Session: next, previous place that was found'], ['e', 'Session: to the end, and follow'], ['.', 'Session: stop what runs'],
    ['s', 'Changes: inline or side by side'], ['v', 'Session: what it changed'], ['[, ]', 'Changes: previous, next file'], ['Esc', 'back, close'], ['?', 'this list'],
];

export function showKeys() {
    dialog('Keyboard', () => h('dl.keys', LIST.map(([keys, what]) => [h('dt', h('kbd', keys)), h('dd', what)])));
}
