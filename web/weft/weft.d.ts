/* Types of weft.js: those of the seed, and what goes beyond them. What belongs to a browser is described by what is needed of it, so
 * that a program for a worker, Node, Deno or Bun compiles without TypeScript's types of a page (lib "dom"). */

export interface JSONRPCRequest {
    jsonrpc: '2.0';
    method: string;
    params?: Record<string, unknown> | unknown[];
    id: number | string;
}
export interface JSONRPCNotification {
    jsonrpc: '2.0';
    method: string;
    params?: Record<string, unknown> | unknown[];
}
export interface JSONRPCSuccessResponse {
    jsonrpc: '2.0';
    result: unknown;
    id: number | string;
}
export interface JSONRPCErrorResponse {
    jsonrpc: '2.0';
    error: { code: number; message: string; data?: unknown };
    id: number | string;
}
export type JSONRPCResponse = JSONRPCSuccessResponse | JSONRPCErrorResponse;
export type JSONRPCMessage = JSONRPCRequest | JSONRPCNotification | JSONRPCResponse;

/** AbortSignal, where the program's types know it. */
export type Signal = typeof globalThis extends { AbortSignal: { prototype: infer T } } ? T : {
    readonly aborted: boolean;
    readonly reason: any;
    throwIfAborted(): void;
    addEventListener(type: 'abort', listener: (event: any) => void, options?: any): void;
    removeEventListener(type: 'abort', listener: (event: any) => void): void;
};
export interface WindowLike {
    postMessage(message: any, targetOrigin: string, transfer?: any): void;
}
/** A window that hears messages. */
export interface ScopeLike {
    readonly origin: string;
    addEventListener(type: 'message', listener: (event: any) => void): void;
    removeEventListener(type: 'message', listener: (event: any) => void): void;
}
/** A MessagePort, also of node:worker_threads. */
export interface PortLike {
    postMessage(message: any, transfer?: any): void;
    start(): void;
    close(): void;
}
/** A URL, or the location of a page. */
export interface AddressLike {
    readonly href: string;
}

/** What client and server need of a transport. Those of weft.js call every handler; a transport of somebody else may have room for one. */
export interface RPCTransport {
    send(message: JSONRPCMessage | JSONRPCMessage[], transfer?: object[]): void | Promise<void>;
    /** all: also batches and what is no JSON-RPC message. The result, if there is one, ends it. */
    onMessage(handler: (message: any) => void, options?: { all?: boolean }): (() => void) | void;
    onState?(watch: (state: ConnectionState) => void): () => void;
    destroy?(): void;
}

export interface CallOptions {
    /** Milliseconds; each part of an answer begins them anew. Infinity: none. Default: that of the client. */
    timeout?: number;
    /** Withdraws the call: it rejects with signal.reason, and the other side is told. */
    signal?: Signal;
    /** Handed over instead of copied (windows, workers and ports). */
    transfer?: object[];
    /** Ask for parts of the answer; needs params that are an object or absent. */
    onPart?: (part: any) => void;
    /** Only with the client's option extras. */
    idempotencyKey?: string;
    /** Tell the other side how long this one waits. Only with the client's option extras. */
    sendDeadline?: boolean;
}

export interface ClientOptions {
    /** Milliseconds that a call waits, 10000 when absent. */
    timeout?: number;
    /** Open calls at most; 65536 when absent. */
    maxPending?: number;
    /** How calls are withdrawn and parts are asked for. */
    style?: 'lsp' | 'acp' | 'mcp';
    /** The other side knows weft/deadlineMs and weft/idempotencyKey; a call that timed out is withdrawn there. */
    extras?: boolean;
}

export type Params = Record<string, unknown> | unknown[];

/** Why a call failed on this side. */
export interface CallFailure extends Error {
    reason: 'timeout' | 'destroyed' | 'disconnected' | 'malformed' | 'tooManyCalls' | 'tooManyParts';
}

export interface AnswerStream<Part, Result> extends AsyncIterable<Part> {
    readonly result: Promise<Result>;
}

export declare class JSONRPCClient {
    constructor(transport: RPCTransport, options?: ClientOptions);
    readonly transport: RPCTransport;
    request<T = unknown>(method: string, params?: Params, options?: CallOptions): Promise<T>;
    notify(method: string, params?: Params, options?: { transfer?: object[] }): void;
    stream<Part = unknown, Result = unknown>(method: string, params?: Record<string, unknown>,
        options?: Omit<CallOptions, 'onPart'> & { maxParts?: number }): AnswerStream<Part, Result>;
    /** What build() sends goes out as one message; at most 1000 calls and notifications. */
    batch<T>(build: (client: this) => T): T;
    /** '*' hears what no other handler does. */
    onNotify(method: string, handler: (params: any, method: string) => void): () => void;
    destroy(): void;
}

export declare class RPCError extends Error {
    code: number;
    data?: unknown;
    constructor(code: number, message: string, data?: unknown);
    /** data.reason */
    get reason(): string | undefined;
}

export interface RequestContext {
    readonly id: number | string | null | undefined;
    readonly signal: Signal;
    /** false: the caller did not ask for parts. */
    part(value: unknown, transfer?: object[]): boolean;
    transfer(...objects: object[]): void;
}
export type Handler = (params: any, context: RequestContext) => unknown;

export declare class JSONRPCServer {
    constructor(transport: RPCTransport);
    method(name: string, handler: Handler): void;
    onNotify(name: string, handler: (params: any, context: RequestContext) => void): void;
    destroy(): void;
}

/** Values on their way to one reader. */
export declare class Queue<T> {
    constructor(max: number);
    readonly size: number;
    put(value: T): boolean;
    clear(): void;
    end(error?: unknown): void;
    next(): Promise<IteratorResult<T, undefined>>;
}

export declare function windowTransport(target: WindowLike, source?: ScopeLike, origin?: string): RPCTransport;
export declare function portTransport(port: PortLike): RPCTransport;
/** Also a Worker of node:worker_threads. */
export declare function workerTransport(worker: WorkerLike): RPCTransport;
export declare function selfTransport(scope?: object): RPCTransport;

export interface WorkerLike {
    postMessage(message: any, transfer?: any): void;
}

export interface ConnectionState {
    name: 'connecting' | 'open' | 'waiting' | 'closed';
    /** Date.now() when it became so. */
    since: number;
    /** Attempts since it was connected last. */
    attempt: number;
    code?: number;
    reason?: string;
    /** When the next attempt comes. */
    retryAt?: number;
}

export interface WebSocketOptions {
    /** Sent as a subprotocol, as the hub wants it of browsers. A page of the hub needs none. */
    token?: string | (() => string | Promise<string>);
    protocols?: string[];
    reconnect?: false | { first?: number; factor?: number; max?: number; jitter?: number };
    /** signer() of sign.js. */
    sign?: (message: any) => Promise<string>;
    /** Milliseconds without a message after which the connection counts as lost; 0 or absent: never. */
    silence?: number;
    /** Where there is no global one. */
    WebSocket?: any;
}

export interface WebSocketTransport extends RPCTransport {
    readonly state: ConnectionState;
    onMessage(handler: (message: any) => void, options?: { all?: boolean }): () => void;
    onState(watch: (state: ConnectionState) => void): () => void;
    retry(): void;
    destroy(): void;
}

export declare function webSocketTransport(url: string | AddressLike | (() => string | AddressLike | Promise<string | AddressLike>), options?: WebSocketOptions): WebSocketTransport;

export declare const PARSE_ERROR: -32700;
export declare const INVALID_REQUEST: -32600;
export declare const METHOD_NOT_FOUND: -32601;
export declare const INVALID_PARAMS: -32602;
export declare const INTERNAL_ERROR: -32603;
export declare const REQUEST_CANCELLED: -32800;
export declare const BUILD_FAILED: -32001;
export declare const GATE_FAILED: -32002;
export declare const PERMISSION_DENIED: -32003;
export declare const TASK_CANCELLED: -32004;
export declare const PREVIEW_LOAD_FAILED: -32005;
export declare const NAVIGATION_FAILED: -32006;
export declare const MCP_SERVER_ERROR: -32007;
export declare const CONTEXT_OVERFLOW: -32008;
