import type { CallOptions, RPCError, RPCTransport } from './weft.js';

export interface FetchParams {
    url: string;
    method?: string;
}
export interface FetchResult {
    status: number;
    headers: Record<string, string>;
    body: string;
    encoding: 'base64';
}
export interface NavigationState {
    url: string;
    canGoBack: boolean;
    canGoForward: boolean;
}
export interface ConsoleLine {
    level: string;
    message: string;
}
export interface PreviewError {
    message: string;
    source: string;
    line?: number;
    column?: number;
    stack: string;
}
export type FileBody = string | ArrayBuffer | Uint8Array;
export type Files = (path: string) => FileBody | { body: FileBody; type?: string } | undefined | Promise<FileBody | { body: FileBody; type?: string } | undefined>;

export interface PreviewParentOptions {
    files?: Files;
    fetch?: (params: Required<FetchParams>) => FetchResult | Promise<FetchResult>;
    onConsole?: (line: ConsoleLine) => void;
    onNavigation?: (state: NavigationState) => void;
    onError?: (error: PreviewError) => void;
}
export interface PreviewParent {
    readonly state: NavigationState;
    navigate(url: string, options?: CallOptions): Promise<NavigationState>;
    back(options?: CallOptions): Promise<NavigationState>;
    forward(options?: CallOptions): Promise<NavigationState>;
    refresh(options?: CallOptions): Promise<NavigationState>;
    destroy(): void;
}
export declare function previewParent(transport: RPCTransport, options?: PreviewParentOptions): PreviewParent;

export interface PreviewPages {
    readonly state: NavigationState;
    open(url: string): Promise<void>;
    refresh(): Promise<void>;
    go(delta: number): Promise<void>;
}
export declare function previewFrame(transport: RPCTransport, options?: { scope?: object }): { pages: PreviewPages; destroy(): void };

export declare function fetchFile(files: Files, params: FetchParams): Promise<FetchResult>;
export declare function toBase64(body: FileBody): string;
export declare function fromBase64(text: string): Uint8Array;
export declare function navigationFailed(message: string, url: string): RPCError;
export declare function previewLoadFailed(message: string): RPCError;
